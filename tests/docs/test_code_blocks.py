"""The code of the documentation runs: every block that is marked ``python`` or holds ``edp`` commands.

A page is one test: its blocks run in order, in a folder with a tiny data set and some tiny runs, and its Python blocks
share their names. Two changes make long commands short: training, evaluation and the rest get the options of
``SHORT`` at their end (which win over earlier ones), and ``edp.fit`` gets those of ``SHORT_FIT``.
A block after ``<!-- not run: REASON -->`` is not run, but its options are still checked against the commands' help.
"""

import re
import shlex
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import pytest

import edp
import edp.api
from edp.algorithms import ALGORITHMS
from edp.cli import main
from edp.data.tasks import TASKS
from edp.diffusion.samplers import SAMPLERS
from edp.policies import POLICIES

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
FENCE = re.compile(r"(?:^<!-- not run: (?P<why>[^\n]+) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S)
COMMAND = re.compile(r"^(?:\$ )?(edp (?:.*\\\n)*.*)$", re.M)

SHORT = {
    "train": "--steps 20 --epoch-steps 10 --eval-every 20 --episodes 1 --batch-size 8 --hidden 8",
    "train --resume": "--steps 30",
    "eval": "--episodes 1 --eas 2",
    "eval --offline": "--model-steps 10 --q-rows 100 --replays 4",
    "ablate": "--episodes 1",
}
SHORT_FIT = {"steps": 20, "epoch_steps": 10, "eval_every": 20, "episodes": 1, "batch_size": 8, "hidden": (8,)}
WITHOUT_CRITIC = {"bc", "dt"}


class Block(NamedTuple):
    line: int
    kind: str  # "python" or "command"
    text: str
    not_run: str | None  # why


def blocks(document: Path) -> list[Block]:
    """The blocks of a document that are Python, or hold commands of this package."""
    text, found = document.read_text(encoding="utf-8"), []
    for fence in FENCE.finditer(text):
        line = text[: fence.start("text")].count("\n") + 1
        if fence["kind"] == "python":
            found.append(Block(line, "python", fence["text"], fence["why"]))
        elif COMMAND.search(fence["text"]):
            found.append(Block(line, "command", fence["text"], fence["why"]))
    return found


def commands(text: str) -> list[list[str]]:
    """The commands of a block as lists of words, without comments and output."""
    return [shlex.split(line.replace("\\\n", " "), comments=True)[1:] for line in COMMAND.findall(text)]


def shortened(words: list[str]) -> list[str]:
    """The command with options that make it quick."""
    command = words[0]
    for option in ("--resume", "--offline"):
        if option in words:
            command += f" {option}"
    more = SHORT.get(command, "").split()
    if "--print-config" in words:
        return words
    if command == "train --resume" and "--steps" in words:  # longer than a command without it
        more = ["--steps", "40"]
    if command == "train" and not WITHOUT_CRITIC & set(words):
        more = [*more, "--critic-hidden", "8"]
    return [*words, *more]


@pytest.fixture(autouse=True)
def registries():
    """Pages add entries to registries, which other tests must not see."""
    registries: list[dict[str, Any]] = [ALGORITHMS, POLICIES, SAMPLERS, TASKS]  # pyright: ignore
    kept = [(registry, dict(registry)) for registry in registries]
    yield
    for registry, entries in kept:
        registry.clear()
        registry.update(entries)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with the files that the pages use: logs, one of D4RL's files, and runs on it. All of them are tiny."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "d4rl").mkdir()
    write_hopper(folder / "d4rl" / "hopper_medium-v2.hdf5")
    shutil.copy(folder / "d4rl" / "hopper_medium-v2.hdf5", folder / "my-copy.hdf5")
    (folder / "logs").mkdir()
    for seed, name in enumerate(("logs.csv", "heating.csv", "logs/monday.csv", "logs/tuesday.csv")):
        (folder / name).write_text(heating_table(seed), encoding="utf-8")
    (folder / "results").mkdir()
    shutil.copy(ROOT / "results" / "bench.json", folder / "results")
    shutil.copy(ROOT / "examples" / "heating" / "columns.toml", folder)
    with pytest.MonkeyPatch.context() as patch:
        at_home(patch, folder)
        assert main(shortened(["train", "hopper-medium-v2", "--quiet", "--out", "runs/first"])) == 0
    for name in ("NAME", "ONE", "TWO"):
        shutil.copytree(folder / "runs" / "first", folder / "runs" / name)
    return folder


def at_home(patch: pytest.MonkeyPatch, folder: Path) -> None:
    patch.chdir(folder)
    patch.setenv("EDP_DATA", str(folder / "d4rl"))
    patch.setenv("EDP_CACHE", str(folder / "cache"))
    patch.setenv("HOME", str(folder))
    patch.syspath_prepend(str(folder))


def write_hopper(path: Path) -> None:
    rng, n = np.random.default_rng(0), 200
    with h5py.File(path, "w") as file:
        file["observations"] = rng.standard_normal((n, 11)).astype(np.float32)
        file["actions"] = rng.uniform(-1, 1, (n, 3)).astype(np.float32)
        file["rewards"], file["terminals"] = rng.standard_normal(n), np.zeros(n, bool)
        file["timeouts"] = np.arange(1, n + 1) % 20 == 0


def heating_table(seed: int) -> str:
    """Random rows with columns of the heating example."""
    rng = np.random.default_rng(seed)
    ranges = {
        **{"room_temp_c": (15, 25), "outdoor_temp_c": (-10, 15), "return_temp_c": (20, 40), "solar_w_m2": (0, 500)},
        **{"hour_sin": (-1, 1), "hour_cos": (-1, 1), "price_eur_kwh": (0.1, 0.4)},
        **{"flow_temp_c": (18, 75), "valve_percent": (0, 100), "reward_eur": (-1, 0)},
    }
    low, high = zip(*ranges.values(), strict=True)
    rows = [
        [str(i // 10), ("ann", "bob")[i // 10 % 2], *(f"{value:.4f}" for value in rng.uniform(low, high))]
        for i in range(200)
    ]
    return "\n".join(",".join(row) for row in [["turn", "operator", *ranges], *rows]) + "\n"


PAGES = [document for document in DOCUMENTS if any(block.not_run is None for block in blocks(document))]


@pytest.mark.parametrize("document", PAGES, ids=lambda path: path.stem)
def test_the_code_of_a_page_runs(document, home, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "home"
    shutil.copytree(home, folder)
    at_home(monkeypatch, folder)
    fit = edp.api.fit
    monkeypatch.setattr(edp.api, "fit", lambda *data, **options: fit(*data, **options | short_fit(options)))
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks(document):
        where = f"{document.name}:{block.line}"
        if block.not_run is not None:
            continue
        if block.kind == "python":
            exec(compile("\n" * block.line + block.text, document.name, "exec"), names)
        for words in commands(block.text) if block.kind == "command" else ():
            code = main(shortened(words))
            said = capsys.readouterr()
            wanted = 2 if "\nedp: " in block.text else 0  # the block shows an error
            assert code == wanted, f"{where}: edp {' '.join(words)}\n{said.err}"
            if wanted:
                assert said.err.strip() in block.text, where


def short_fit(options: dict) -> dict:
    return SHORT_FIT | ({} if WITHOUT_CRITIC & {options.get("algo")} else {"critic_hidden": (8,)})


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_commands_have_the_options_that_documents_name(document, capsys):
    """Also those that are not run."""
    for block in blocks(document):
        for words in commands(block.text) if block.kind == "command" else ():
            command = words[:2] if words[0] == "data" else words[:1]
            chosen = [word for name in ("--algo", "--policy", "--preset") for word in option_of(words, name)]
            resume = ["--resume", "RUN"] if "--resume" in words else []
            with pytest.raises(SystemExit):
                main([*command, *chosen, *resume, "--help"])
            text = capsys.readouterr().out
            for flag in (word.split("=")[0] for word in words if word.startswith("--")):
                assert re.search(rf"{flag}\b", text), f"{document.name}:{block.line}: no {flag} in edp {command}"


def option_of(words: list[str], name: str) -> list[str]:
    return [name, words[words.index(name) + 1]] if name in words else []


def test_the_blocks_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nx = 1\n```\n\n"
        "<!-- not run: no file -->\n```sh\nedp train a \\\n    --b 'c d'  # e\nedp runs\n```\n\n"
        "```\n$ edp runs x\noutput\n```\n\n```\nmake run\n```\n",
        encoding="utf-8",
    )
    found = blocks(page)
    assert [block.kind for block in found] == ["python", "command", "command"]
    assert [block.not_run for block in found] == [None, "no file", None]
    assert commands(found[1].text) == [["train", "a", "--b", "c d"], ["runs"]]
    assert commands(found[2].text) == [["runs", "x"]]
