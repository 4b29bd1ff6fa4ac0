"""The page in which a policy heats a house (examples/web), in a real browser."""

import functools
import json
import sys
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from edp.data.signals import Signals
from edp.data.units import Units
from edp.errors import UserError
from support.browser import errors, needs_chromium, open_browser, preferring, sized, unreadable, webdriver
from support.serving import serving
from support.tiny_policy import tiny_policy

WEB, HEATING = (Path(__file__).parents[2] / "examples" / name for name in ("web", "heating"))
sys.path[:0] = [str(WEB), str(HEATING)]

import build_page  # noqa: E402
import logs  # noqa: E402

import heating  # noqa: E402

pytestmark = needs_chromium
# Centres and widths of the observations, about as in the logs.
SHIFT, SCALE = (22.0, 3.0, 33.0, 80.0, 0.0, 0.0, 0.3), (1.0, 4.5, 7.0, 140.0, 0.7, 0.7, 0.15)
LOW, HIGH = (17.0, -11.0, 19.0, 0.0, -1.0, -1.0, 0.11), (27.0, 20.0, 58.0, 550.0, 1.0, 1.0, 0.53)
STEPS = 10 * heating.STEPS
ASYNC = """
const done = arguments[arguments.length - 1], work = async (...given) => {%s};
work(...arguments).then(done, (error) => done(String(error)));
"""
SIMULATE = """
const [start, sky, human, who, actions] = given;
const { ACTIONS, House, OBSERVATIONS, Weather } = await import("/house.js"), operators = await import("/operators.js");
const from = (numbers) => ({ normal: () => numbers.shift(), uniform: () => numbers.shift() });
const draw = from(start), weather = new Weather(draw), house = new House(draw), changes = from(sky);
weather.pass(changes);
const operator = who && new operators[who](from(human)), rows = [];
for (const action of actions) {
  const seen = house.observe(weather), chosen = operator ? operator.act(seen) : action;
  const { cost, discomfort } = house.step(chosen, weather);
  weather.advance(changes);
  rows.push([...OBSERVATIONS.map((name) => seen[name]), ...chosen, -cost - discomfort]);
}
return rows;
"""
STICKS_OUT = """
const right = (node) => node.getBoundingClientRect().right;
return [...document.querySelectorAll(":is(.card, .panel, .charts) *")]
  .filter((node) => right(node) > right(node.closest(".card, .panel, .charts")) + 0.5).map((node) => node.outerHTML);
"""
ACT = """
const { ACTIONS, OBSERVATIONS } = await import("/house.js"), { Policy } = await import("/policy.js");
const policy = await Policy.load(OBSERVATIONS, ACTIONS), [inputs, rows] = given;
return policy.run(inputs, rows);
"""
RANDOM = """
const { Random } = await import("/random.js"), numbers = {}, count = 20000;
for (const kind of ["uniform", "normal", "gumbel"]) {
  const draw = (random) => Array.from({ length: count }, () => random[kind]());
  numbers[kind] = [draw(new Random(1, 2)), draw(new Random(1, 2)), draw(new Random(1, 3))];
}
return numbers;
"""


class Recorder:
    """A generator of NumPy that keeps what it drew."""

    def __init__(self, seed):
        self.rng, self.drawn = np.random.default_rng(seed), []

    def __getattr__(self, name):
        def draw(*args, **options):
            numbers = getattr(self.rng, name)(*args, **options)
            self.drawn += np.ravel(numbers).tolist()
            return numbers

        return draw


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("browser"), performance="ALL") as driver:
        yield driver


def serve(folder):
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(folder))
    return serving(ThreadingHTTPServer(("127.0.0.1", 0), handler))


def address(server, path=""):
    return f"http://127.0.0.1:{server.server_port}/{path}"


@pytest.fixture(scope="module")
def modules(browser):
    """A page from which the modules of the folder can be imported."""
    with serve(WEB) as server:
        browser.get(address(server, "page.css"))
        yield browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The page with a small policy."""
    place = tmp_path_factory.mktemp("web")
    units = Units(SHIFT, SCALE, heating.LOW, heating.HIGH)
    policy = tiny_policy(units=units, sampler="dpm++", calls=6, eas=3)  # which asks for noise and for Gumbel numbers
    policy.signals = Signals(heating.OBSERVATIONS, heating.ACTIONS, LOW, HIGH)
    try:
        build_page.build(policy, place / "page")
    except UserError as error:
        if "npm" not in str(error):
            raise
        pytest.skip(str(error))
    return place / "page"


@pytest.fixture(scope="module")
def server(folder):
    with serve(folder) as server:
        yield server


@pytest.fixture(scope="module")
def contract(folder):
    return json.loads((folder / "policy.json").read_text(encoding="utf-8"))


def wait_for(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


def opened(browser, server, path=""):
    for kind in ("browser", "performance"):
        browser.get_log(kind)  # what is in it is of an earlier page
    browser.get(address(server, path))
    wait_for(lambda: browser.find_element("id", "live").is_displayed() or "stopped" in text(browser, "#message"))
    return browser


def text(browser, place):
    return browser.find_element("css selector", place).text


def click(browser, place):
    browser.execute_script("document.querySelector(arguments[0]).click()", place)


def number(words):
    return float(words.split()[0].replace("−", "-"))


def ask(browser, script, *given):
    found = browser.execute_async_script(ASYNC % script, *given)
    assert not isinstance(found, str), found
    return found


@pytest.mark.parametrize("who", ["Steady", "Pulses", None])
def test_the_house_is_that_of_the_example(modules, who):
    """The same weather, operators and actions give the same observations and rewards as in Python."""
    env, sky, human, rng = heating.Heating(), Recorder(1), Recorder(2), np.random.default_rng(3)
    env.np_random = sky  # pyright: ignore
    obs, _ = env.reset()
    start, sky.drawn = sky.drawn[:7], sky.drawn[7:]
    operator, rows = getattr(logs, who)(human) if who else None, []
    others = rng.uniform(np.subtract(heating.LOW, 5), np.add(heating.HIGH, 5), (STEPS, 2))  # some have to be clipped
    for other in others:
        action = operator.act(obs) if operator else other
        after, reward, *_ = env.step(action)
        rows.append([*obs, *action, reward])
        obs = after
    found = ask(modules, SIMULATE, start, sky.drawn, human.drawn, who, others.tolist())
    np.testing.assert_allclose(found, rows, rtol=1e-6, atol=1e-6)
    assert np.ptp(rows, axis=0).min() > 0.1


def test_random_numbers(modules):
    moments = {"uniform": (0.5, 12**-0.5), "normal": (0, 1), "gumbel": (np.euler_gamma, np.pi / 6**0.5)}
    for kind, (first, again, other) in ask(modules, RANDOM).items():
        mean, std = moments[kind]
        assert first == again
        assert abs(np.corrcoef(first, other)[0, 1]) < 0.03 > abs(np.corrcoef(first[1:], first[:-1])[0, 1])
        np.testing.assert_allclose([np.mean(first), np.std(first)], [mean, std], atol=0.03)


def test_actions_are_those_of_python(browser, server, folder, contract):
    rows, rng = 5, np.random.default_rng(0)
    assert [given["name"] for given in contract["inputs"]] == ["observation", "noise", "gumbel"]
    inputs = {given["name"]: rng.normal(size=[rows, *given["shape"][1:]]) for given in contract["inputs"]}
    inputs["observation"] = np.array(contract["example"]["observation"]) * rng.uniform(0.9, 1.1, (rows, 7))
    session = onnxruntime.InferenceSession(folder / "policy.onnx")
    (wanted,) = session.run(None, {name: array.astype(np.float32) for name, array in inputs.items()})
    browser.get(address(server, "page.css"))
    found = ask(browser, ACT, {name: array.ravel().tolist() for name, array in inputs.items()}, rows)
    ranges = np.subtract(heating.HIGH, heating.LOW)
    np.testing.assert_allclose(found / ranges, wanted / ranges, atol=1e-5)
    assert np.ptp(np.asarray(wanted), axis=0).min() > 0.1


@pytest.mark.parametrize("width", [360, 1440])
def test_the_policy_heats_the_house(browser, server, contract, width):
    with sized(browser, width):
        opened(browser, server)
        click(browser, "[name=speed][value='24']")
        seen = set()
        for _ in range(4):
            now = tuple(number(each.text) for each in browser.find_elements("css selector", "#card-policy .setting"))
            seen.add(now)
            assert all(
                entry["low"] <= value <= entry["high"] for value, entry in zip(now, contract["actions"], strict=True)
            )
            past = text(browser, "#time")
            wait_for(lambda past=past: text(browser, "#time") != past)
        assert len(seen) > 1
        rewards = [number(text(browser, f"#card-{who} .reward dd")) for who in ("policy", "steady", "pulses")]
        assert max(rewards) < 0 and len(set(rewards)) == 3
        count = lambda place: len(browser.find_elements("css selector", place))  # noqa: E731
        assert (count(".chart"), count("path.line"), count("#choice .draw")) == (6, 14, 21)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert browser.execute_script(STICKS_OUT) == []
    assert errors(browser) == []
    sent = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = {each["params"]["request"]["url"] for each in sent if each["method"] == "Network.requestWillBeSent"}
    assert address(server, "policy.onnx") in urls
    assert all(url.startswith((address(server), "data:")) for url in urls), urls


def test_controls(browser, server):
    with preferring(browser, reduced_motion="reduce"):  # then it waits for the user
        opened(browser, server, "?seed=3")
        use_controls(browser)
    assert errors(browser) == []


def use_controls(browser):
    keys, slide = webdriver.Keys, lambda name, key: browser.find_element("id", name).send_keys(key)
    seen = lambda row: number(text(browser, f"#seen tr:nth-child({row}) .number"))  # noqa: E731
    assert len({text(browser, f"#card-{who} .room strong") for who in ("policy", "steady", "pulses")}) == 3
    slide("season", keys.HOME)
    wait_for(lambda: seen(2) < -10)
    slide("season", keys.END)
    wait_for(lambda: "outdoors (2" in text(browser, "#outside"))
    assert len(browser.find_elements("css selector", "#seen tr.outside")) == 1
    slide("season", keys.ARROW_LEFT * 40)
    wait_for(lambda: "within" in text(browser, "#outside"))
    slide("level", keys.HOME)
    wait_for(lambda: seen(7) == 0.07)
    assert text(browser, "output[for=level]") == "0.07, 0.14, 0.22 €/kWh"
    click(browser, "#changing")
    slide("clouds", keys.END)
    wait_for(lambda: seen(4) == 81)  # at noon, half an hour before the sun is highest
    slide("clouds", keys.HOME)
    wait_for(lambda: seen(4) == 542)
    click(browser, "#legend button.pulses")
    wait_for(lambda: len(browser.find_elements("css selector", "path.line")) == 10)
    assert text(browser, "#time") == "Day 2, 12:00"
    click(browser, "#step")
    wait_for(lambda: text(browser, "#time") == "Day 2, 12:30")
    assert text(browser, "output[for=clouds]") == "0 %"
    click(browser, "#again")
    wait_for(lambda: text(browser, "#about").endswith("seed 4"))
    assert text(browser, "#time") == "Day 2, 12:00"
    click(browser, "#run")
    wait_for(lambda: text(browser, "#time") > "Day 2, 13:00")
    assert text(browser, "#run") == "Pause"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(browser, server, scheme):
    with preferring(browser, color_scheme=scheme):
        opened(browser, server)
        assert unreadable(browser) == []


def test_a_model_that_does_not_give_its_example_is_not_used(browser, folder, contract, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    contract["example"]["action"][0][0] += 1
    (tmp_path / "policy.json").unlink()
    (tmp_path / "policy.json").write_text(json.dumps(contract), encoding="utf-8")
    with serve(tmp_path) as server:
        opened(browser, server)
        assert "does not give the contract's example" in text(browser, "#message")
        assert not browser.find_element("id", "live").is_displayed()


class TestBuilding:
    def test_another_package_is_refused(self, tmp_path):
        (tmp_path / "other.tgz").write_bytes(b"other")
        with pytest.raises(UserError, match="digest"):
            build_page.unpack(tmp_path / "other.tgz", tmp_path / "onnxruntime")
        assert not (tmp_path / "onnxruntime").exists()

    def test_another_folder_is_refused(self, tmp_path, capsys):
        (tmp_path / "mine.txt").write_text("mine")
        assert build_page.main(["run", str(tmp_path)]) == 2
        assert "name another folder" in capsys.readouterr().err

    @pytest.mark.parametrize("side", ["observations", "actions"])
    def test_policies_of_other_processes_are_refused(self, contract, side):
        build_page.check_signals(contract)
        with pytest.raises(UserError, match="level_%"):
            build_page.check_signals(contract | {side: [{"name": "level_%"}]})
