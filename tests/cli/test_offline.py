"""edp eval --offline and edp compare, for a run that has nothing but its log."""

import json

import numpy as np
import pytest

from edp.cli import main
from edp.runs.directory import Run
from edp.runs.load import load_checkpoint, offline_step
from support.own_data import COLUMNS, SMALL, flags, write_csv

QUICK = ["--model-steps", "100", "--replays", "6", "--q-rows", "100"]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = write_csv(tmp_path_factory.mktemp("log") / "room.csv", days=30)
    lines = path.read_text(encoding="utf-8").splitlines()
    named = [lines[0], *(line.replace(",ann", ",bob") if i % 20 < 10 else line for i, line in enumerate(lines[1:]))]
    path.write_text("\n".join(named) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folders(log, tmp_path_factory):
    columns = flags(COLUMNS | {"operator_column": "operator"})
    found = [tmp_path_factory.mktemp("runs") / name for name in ("first", "second")]
    for folder, seed in zip(found, ("0", "1"), strict=True):
        assert main(["train", str(log), *columns, *SMALL, "--seed", seed, "--quiet", "--out", str(folder)]) == 0
    return found


@pytest.fixture(scope="module")
def judged(folders, request):
    for folder in folders:
        assert main(["eval", str(folder), "--offline", *QUICK]) == 0
    return folders


def rows(folder):
    return [json.loads(line) for line in (folder / "offline.jsonl").read_text(encoding="utf-8").splitlines()]


def test_runs_without_a_verdict_are_not_compared(folders, fails):
    assert "judge it by its log with: edp eval RUN --offline" in fails("compare", *folders)


def test_the_verdict_is_shown_and_kept(judged, log, capsys):
    assert main(["eval", str(judged[0]), "--offline", "--checkpoint", "40", *QUICK]) == 0
    printed = capsys.readouterr()
    row = rows(judged[0])[-1]
    verdict = row["verdict"]
    assert verdict["sentence"] in printed.out
    assert "judging 1 policy by the log takes about" in printed.err
    assert verdict["word"] in ("better", "worse", "cannot tell")
    assert verdict["unit"] == "comfort per step"
    low, mean, high = verdict["difference"]
    assert low <= mean <= high
    assert verdict["policy"] == pytest.approx(verdict["log"] + mean)
    table = np.genfromtxt(log, delimiter=",", names=True, dtype=None, encoding="utf-8")
    recorded = {name: table["comfort"][(table["operator"] == name) & last_left_out(table)] for name in ("ann", "bob")}
    assert verdict["operators"] == pytest.approx({name: part.mean() for name, part in recorded.items()}, rel=1e-4)
    assert "ann -" in printed.out
    assert verdict["log"] == pytest.approx(np.mean(table["comfort"][last_left_out(table)]), rel=1e-4)
    assert row["values"] == pytest.approx([verdict["policy"]])


def last_left_out(table):
    """The last rows of days are not used: their next state is unknown."""
    return np.append(table["day"][1:] == table["day"][:-1], False)


def test_all_checkpoints_are_judged_and_none_is_recommended_for_noise(judged, capsys):
    assert main(["eval", str(judged[0]), "--offline", *QUICK]) == 0
    printed = capsys.readouterr().out
    assert [row["step"] for row in rows(judged[0])[-2:]] == [40, 20], "the last one first"
    low = rows(judged[0])[-1]["over_last"][0]
    said = ("No checkpoint has a higher value", "may be noise") if low <= 0 else ("is better than the last one by",)
    assert any(text in printed for text in said)
    assert load_checkpoint(Run.open(judged[0]), "offline")[1].step == (40 if low <= 0 else 20)


def test_runs_are_compared_by_their_verdicts(judged, capsys, fails):
    assert main(["compare", *map(str, judged)]) == 0
    printed = capsys.readouterr().out
    assert "comfort per step" in printed
    assert "from the log alone" in printed
    assert main(["eval", str(judged[1]), "--offline", *QUICK, "--horizon", "5"]) == 0
    assert "judged with different options" in fails("compare", *judged)


def test_options_of_verdicts_need_offline(judged, fails):
    assert "--replays is for --offline" in fails("eval", judged[0], "--replays", "5")


def test_another_step_is_chosen_only_beyond_the_noise():
    row = lambda step, *over_last: {"step": step, "over_last": over_last}  # noqa: E731
    last = row(30, 0.0, 0.0, 0.0)
    assert offline_step([last, row(20, -0.1, 2.0, 3.0), row(10, 0.1, 1.0, 2.0)], [10, 20, 30]) == 10
    assert offline_step([last, row(20, -0.1, 2.0, 3.0)], [10, 20, 30]) == 30
    assert offline_step([last, row(10, 0.1, 1.0, 2.0)], [20, 30]) == 30, "its checkpoint is gone"
    assert offline_step([{"step": 30}], [30]) is None
