"""The page in a real browser."""

import json
import shutil
import time

import pytest
from fake import HOSTILE, entries, look, make, make_own, make_sweep, verdict, write

from edp.report.page import build_page
from edp.report.paper_tables import paper_tables
from edp.report.sweep import sweep_parts
from edp.report.sweep_results import read_sweep
from support.browser import errors, needs_chromium, open_browser, preferring, sized, unreadable, webdriver
from support.untraced import untraced

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("browser")) as driver:
        yield driver


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    look(make(folder / "a", level=90))
    make(folder / "b", algorithm="iql", level=60)
    make(folder / "c", task="walker2d-medium-v2", level=70, device=HOSTILE)
    make(folder / HOSTILE.replace("/", "-"), algorithm="crr", level=30)
    own = make_own(folder / "own", failed=0)
    write(own / "offline.jsonl", [{"step": 9000, "values": [1.0, None, 2.0], "verdict": verdict(sentence=HOSTILE)}])
    bad = make(folder / "bad")
    (bad / "config.json").write_text("{", encoding="utf-8")
    file = folder / "report.html"
    runs = entries(folder)
    file.write_text(build_page(runs, HOSTILE, paper_tables(runs)), encoding="utf-8")
    return file


@pytest.fixture
def opened(browser, page):
    browser.set_window_size(1440, 900)
    browser.get(page.as_uri())
    see_all(browser)
    return browser


def see_all(browser):
    """Scroll through the page, so that everything is drawn."""
    for _ in range(60):
        end = browser.execute_script(
            "window.scrollBy(0, 600); return scrollY + innerHeight >= document.documentElement.scrollHeight - 2"
        )
        time.sleep(0.05)
        if end:
            return


def test_it_opens_without_errors_and_draws_its_curves(opened):
    assert errors(opened) == []
    assert len(opened.find_elements("css selector", ".chart svg")) >= 5
    assert opened.execute_script("return document.querySelectorAll('polyline').length") >= 8


def test_what_a_policy_does_is_drawn(opened):
    count = lambda what: len(opened.find_elements("css selector", what))  # noqa: E731
    assert (count("#looks-0 .histogram"), count("#looks-0 .pair figure")) == (3, 2)  # actions, and densities
    assert (count("#looks-0 .wall"), count("#looks-0 .path"), count("#looks-0 .taken")) == (20, 1, 10)
    assert (
        "One episode: 40 steps, return 1.5; the policy after 12,000 steps." in opened.find_element("id", "looks-0").text
    )
    assert errors(opened) == []


def test_actions_of_a_log_have_a_legend_and_named_axes(opened):
    data = json.loads(opened.find_element("id", "data").get_attribute("textContent"))
    (number,) = [i for i, run in enumerate(data["looks"]) if run["name"].startswith("own:")]
    host = opened.find_element("id", f"looks-{number}")
    assert [each.text for each in host.find_elements("css selector", ".legend > span")] == [
        "in the log",
        "of the policy",
    ]
    texts = [each.text for each in host.find_elements("css selector", ".histogram:first-of-type text")]
    assert {"valve_%", "share of the states", "0", "100"} <= set(texts)
    assert "after 11,000 steps (the run has 12,000)" in host.text


def test_script_in_names_is_text(opened):
    assert opened.execute_script("return window.hacked") is None
    assert HOSTILE in opened.find_element("css selector", "h1").text
    assert opened.find_elements("css selector", "img") == []


def test_a_click_on_a_column_sorts_by_it(opened):
    table = opened.find_element("css selector", "table")
    button = table.find_elements("css selector", "th button")[2]  # RAT
    values = lambda: [  # noqa: E731
        float(cell.get_attribute("data-value"))
        for cell in table.find_elements("css selector", "td:nth-child(3)")
        if cell.get_attribute("data-value")
    ]
    opened.execute_script("arguments[0].click()", button)
    assert values() == sorted(values())
    opened.execute_script("arguments[0].click()", button)
    assert values() == sorted(values(), reverse=True)
    assert len(set(values())) > 2


def test_a_click_on_a_task_sorts_the_methods_and_one_on_a_method_the_tasks(opened):
    table = opened.find_element("css selector", "table.across")
    cells = lambda row: [cell.get_attribute("data-value") for cell in row.find_elements("css selector", "td")]  # noqa: E731
    hopper, walker = table.find_elements("css selector", "tbody tr")
    head = lambda: [each.text.rstrip(" ▲▼") for each in table.find_elements("css selector", "thead th")]  # noqa: E731
    by_method = dict(zip(head()[1:], cells(hopper), strict=True))
    task = hopper.find_element("css selector", "button")
    for reverse in (True, False):  # the best method first
        opened.execute_script("arguments[0].click()", task)
        found = [float(value) for value in cells(hopper)]
        assert found == sorted(found, reverse=reverse) and len(set(found)) == 3
        assert dict(zip(head()[1:], cells(hopper), strict=True)) == by_method  # heads went along
        assert [bool(value) for value in cells(walker)] == [name == "td3bc + diffusion" for name in head()[1:]]
    for first in ("walker2d-medium-v2", "hopper-medium-v2"):  # levels 70 and 90
        number = head().index("td3bc + diffusion")
        opened.execute_script("arguments[0].click()", table.find_elements("css selector", "thead button")[number])
        assert table.find_element("css selector", "tbody th").text == first


def test_what_was_not_seen_yet_is_drawn_for_the_printer(browser, page):
    browser.set_window_size(1440, 400)
    browser.get(page.as_uri())
    drawn = "return ['curves-0', 'looks-0', 'speed'].map((id) => document.querySelectorAll(`#${id} svg`).length > 0)"
    assert not all(browser.execute_script(drawn))
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert all(browser.execute_script(drawn))
    assert errors(browser) == []


def test_a_click_on_a_name_switches_its_curve_off_and_on(opened):
    chart = "#curves-0 .chart polyline"
    before = len(opened.find_elements("css selector", chart))
    data = json.loads(opened.find_element("id", "data").get_attribute("textContent"))
    curves = [curve for chart in data["tasks"][0]["charts"] for curve in chart["curves"] if curve["run"] == 0]
    name = opened.find_element("css selector", "#curves-0 .legend button")
    opened.execute_script("arguments[0].click()", name)
    assert name.get_attribute("aria-pressed") == "false"
    assert len(curves) == 13 and len(opened.find_elements("css selector", chart)) == before - 13
    opened.execute_script("arguments[0].click()", name)
    assert len(opened.find_elements("css selector", chart)) == before


def test_shift_leaves_one_curve_alone_and_brings_all_back(opened):
    pressed = lambda: [  # noqa: E731
        name.get_attribute("aria-pressed") for name in opened.find_elements("css selector", "#curves-0 .legend button")
    ]
    first = opened.find_element("css selector", "#curves-0 .legend button")
    shift = "arguments[0].dispatchEvent(new MouseEvent('click', {shiftKey: true}))"
    opened.execute_script(shift, first)
    assert pressed() == ["true", "false", "false"]
    opened.execute_script(shift, first)
    assert pressed() == ["true"] * 3


def test_what_was_switched_and_sorted_stays_when_the_page_loads_again(opened, page):
    name = opened.find_element("css selector", "#curves-0 .legend button")
    opened.execute_script("arguments[0].click()", name)
    head = "table th:nth-child(3) button"
    for _ in range(2):
        opened.execute_script(f"document.querySelector('{head}').click()")
    rows = "return [...document.querySelector('table').tBodies[0].rows].map((row) => row.textContent)"
    before = opened.execute_script(rows)
    opened.get(page.as_uri())
    see_all(opened)
    assert opened.find_element("css selector", "#curves-0 .legend button").get_attribute("aria-pressed") == "false"
    assert opened.execute_script(rows) == before
    opened.execute_script("sessionStorage.clear()")


def test_pictures_are_drawn_again_when_there_is_more_room(browser, page):
    browser.set_window_size(500, 900)
    browser.get(page.as_uri())
    see_all(browser)
    widths = "return [...document.querySelectorAll('#looks-0 svg, #speed svg')].map((svg) => svg.viewBox.baseVal.width)"
    before = browser.execute_script(widths)
    browser.set_window_size(1200, 900)
    time.sleep(0.3)
    assert max(browser.execute_script(widths)) > max(before) + 300


def test_paper_holds_all_of_a_wide_table(browser, page):
    """Nothing is wider than the printed page, which cannot be scrolled."""
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    browser.set_window_size(1000, 700)  # a sheet of letter paper, on its side
    try:
        browser.get(page.as_uri())
        script = """return [...document.querySelectorAll(".scroll table, pre")]
            .filter((each) => each.scrollWidth > document.querySelector("main").clientWidth).length"""
        assert browser.execute_script(script) == 0
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_pointing_at_a_curve_shows_its_values(opened):
    svg = opened.find_element("css selector", "#curves-0 .chart svg")
    opened.execute_script("arguments[0].scrollIntoView({block: 'center'})", svg)
    webdriver.ActionChains(opened).move_to_element(svg).perform()
    tip = opened.find_element("css selector", "#curves-0 .tip")
    assert tip.is_displayed()
    assert "step " in tip.text


@pytest.mark.parametrize("width", [360, 1440])
def test_nothing_sticks_out_of_the_window(browser, page, width):
    with sized(browser, width):
        browser.get(page.as_uri())
        see_all(browser)
        sizes = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert sizes[0] <= sizes[1] == width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(browser, page, scheme):
    with preferring(browser, color_scheme=scheme):
        browser.get(page.as_uri())
        see_all(browser)
        assert unreadable(browser) == []


@pytest.mark.parametrize("width", [360, 1440])
def test_a_sweep_fits_into_the_window(browser, tmp_path, width):
    trials = [
        {"values": {"lr": 1e-3 * (i + 1), "hidden": [[64, 64], [16]][i % 2], HOSTILE: i % 3}, "level": 40 + 5 * i}
        for i in range(8)
    ]
    folder = make_sweep(tmp_path / "s", [*trials, trials[7] | {"again": 7, "level": 73}], [(0, 3000, True)])
    file = tmp_path / "report.html"
    page = build_page(entries(folder), "t", sweeps={"s": sweep_parts(read_sweep(folder))})
    file.write_text(page, encoding="utf-8")
    with sized(browser, width):
        browser.get(file.as_uri())
        see_all(browser)
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
        loaded = "return [...document.querySelectorAll('img')].map((each) => each.complete && each.naturalWidth > 200)"
        assert browser.execute_script(loaded) == [True] * 4
        assert unreadable(browser) == [] and errors(browser) == []
        assert browser.execute_script("return window.hacked") is None


def test_two_hundred_runs_respond(browser, tmp_path):
    first = make(tmp_path / "runs" / "0", evaluations=500, seeds=5)
    for number in range(1, 200):
        shutil.copytree(first, tmp_path / "runs" / str(number))
    file = tmp_path / "many.html"
    with untraced():
        file.write_text(build_page(entries(tmp_path / "runs"), "many"), encoding="utf-8")
    browser.get(file.as_uri())
    script = """
    const start = performance.now();
    document.querySelector("th button").click();
    return performance.now() - start;
    """
    assert browser.execute_script(script) < 1000
    browser.execute_script("document.getElementById('curves-0').scrollIntoView()")
    time.sleep(0.5)
    script = """
    const start = performance.now();
    document.querySelector("#curves-0 .legend button").click();
    return performance.now() - start;
    """
    assert browser.execute_script(script) < 3000
    assert errors(browser) == []
