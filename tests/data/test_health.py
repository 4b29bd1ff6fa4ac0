import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from edp.cli import main
from edp.data import health
from edp.data.arrays import from_arrays
from edp.data.dataset import read_dataset
from edp.errors import UserError


def make(n=200, length=20, **changes):
    """Smooth episodes in which nothing is wrong."""
    rng, step = np.random.default_rng(0), np.arange(n) % length
    wave = lambda step: np.stack([np.sin(step / 7), np.cos(step / 7)], axis=1)  # noqa: E731
    obs = wave(step) + 0.01 * rng.standard_normal((n, 2))
    following = np.where((step == length - 1)[:, None], wave(step + 1), np.roll(obs, -1, axis=0))
    content = {
        "observations": obs,
        "actions": rng.uniform(-1, 1, (n, 1)),
        "rewards": rng.standard_normal(n),
        "terminals": np.zeros(n, bool),
        "timeouts": step == length - 1,
        "next_observations": following,
    }
    return {key: value for key, value in (content | changes).items() if value is not None}


def found(**content):
    findings = health.examine_log(from_arrays(**make(**content))).findings
    return [(finding.level, finding.what) for finding in findings if "too few to learn from" not in finding.what]


def ends(n, length):
    return np.arange(n) % length == length - 1


def ramps(n=200, length=20):
    return np.outer(np.arange(n) % length, [1.0, -2.0]) + 0.1 * np.random.default_rng(0).standard_normal((n, 2))


def terminal_in_the_middle(n=200):
    return np.arange(n) == 9


def test_large_integers_with_a_gap_can_be_checked(tmp_path):
    time = pa.array([None, *range(2**60, 2**60 + 19)])
    rows = {"observation_time": time, "action_0": np.linspace(-1, 1, 20), "reward": np.ones(20)}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    assert main(["data", "check", str(tmp_path / "a.parquet"), "--no-picture"]) == 1


def test_error_values_of_sensors_are_drawn_around(tmp_path):
    """The largest double, whose sums are infinite."""
    rng = np.random.default_rng(0)
    obs = rng.standard_normal((200, 4))
    obs[[3, 50, 90], 1] = np.finfo(float).max
    obs[7, 2] = -np.finfo(float).max
    arrays = {"observations": obs, "actions": rng.uniform(-1, 1, (200, 1)), "rewards": rng.random(200)}
    np.savez(tmp_path / "a.npz", **arrays, terminals=np.arange(200) % 20 == 19)
    assert main(["data", "check", str(tmp_path / "a.npz"), "--out", str(tmp_path / "a.png")]) == 1
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_good_data_passes():
    assert found(terminals=terminal_in_the_middle()) == []


@pytest.mark.parametrize(
    ("content", "level", "what"),
    [
        ({}, "note", "no terminals at all"),
        ({"timeouts": np.zeros(200, bool)}, "warning", "no terminals and no timeouts"),
        (
            {"terminals": ends(200, 20), "timeouts": np.zeros(200, bool)},
            "warning",
            "10 of 10 episodes have the length 20, and all are marked terminal",
        ),
        ({"timeouts": np.ones(200, bool)}, "note", "200 of 200 episodes have one step"),
        ({"timeouts": ends(200, 20) | (np.arange(200) == 0)}, "warning", "1 of 11 episodes has one step"),
        ({"timeouts": ends(200, 40)}, "warning", "the state after a step is not the one"),
        (
            {"timeouts": ends(200, 40), "observations": ramps(), "next_observations": None},
            "warning",
            "5 times most observations jump in an episode, first after row 19",
        ),
        ({"rewards": np.ones(200)}, "warning", "every reward is 1"),
        (
            {"timeouts": np.ones(200, bool), "next_observations": None},
            "error",
            "no transition in it has a known next state",
        ),
        ({"rewards": np.arange(200) == 7.0}, "note", "rewards are sparse: 0.50%"),
        (
            {"rewards": np.full(200, -2.0) - (np.arange(200) == 5), "terminals": terminal_in_the_middle()},
            "note",
            "a step costs 2.01 on average, and a terminal costs 2: a policy that ends an episode early loses less",
        ),
        ({"actions": np.full((200, 1), 0.5)}, "error", "1 constant action column: '0'"),
        ({"actions": np.linspace(0, 100, 200)[:, None]}, "note", "actions are not in [-1, 1] (they span 0 to 100)"),
        ({"observations": np.full((200, 2), np.nan)}, "error", "400 NaN, Inf or too large numbers in 2 observation"),
        (
            {"rewards": np.where(np.arange(200) == 3, np.inf, 0.5)},
            "error",
            "1 NaN, Inf or too large number in 1 reward",
        ),
    ],
)
def test_what_is_wrong_is_found(content, level, what):
    if "next_observations" not in content and "observations" in content:
        content["next_observations"] = content["observations"]
    matching = [text for severity, text in found(**content) if severity == level and what in text]
    assert matching, found(**content)


def test_an_end_that_costs_more_than_steps_is_as_it_should_be():
    rewards = np.linspace(-2, -1, 200) - 50.0 * terminal_in_the_middle()
    assert found(terminals=terminal_in_the_middle(), rewards=rewards) == []


def test_an_action_outside_of_its_range_is_named_with_its_row(tmp_path, capsys):
    cells = [f"{i % 20},{0.9 - (i % 17) / 10},{i % 3}" for i in range(200)]
    cells[70] = "7,2.5,1"
    cells[90] = "nan,-1.5,1"
    path = tmp_path / "a.csv"
    path.write_text("\n\n".join(["observation_0,action_0,reward", *cells]), encoding="utf-8")
    (tmp_path / "c.toml").write_text("action_low = -1\naction_high = 1\n", encoding="utf-8")
    columns = ["--columns", str(tmp_path / "c.toml")]
    assert main(["data", "check", str(path), "--no-picture", "--json", *columns]) == 1
    (what,) = (each["what"] for each in json.loads(capsys.readouterr().out)["findings"] if "range" in each["what"])
    assert what.endswith("and its range is -1 to 1, first left in row 70 (line 143), with 2.5")


def test_a_jump_that_is_no_end_is_counted_across_pieces(monkeypatch):
    whole = health.examine_log(from_arrays(**make(timeouts=ends(200, 40)))).findings
    monkeypatch.setattr("edp.data.arrays.PIECE", 20)  # so that every one of them is at the border of two pieces
    monkeypatch.setattr("edp.data.log.PIECE", 20)
    assert health.examine_log(from_arrays(**make(timeouts=ends(200, 40)))).findings == whole


def test_an_error_value_of_a_sensor_is_seen():
    content = make(n=5000, length=50)
    content["observations"][123, 1] = -9999.0
    assert any("'1' reaches" in what for _, what in found(**content))


def test_files_put_in_twice_are_seen():
    content = {key: np.concatenate([column, column]) for key, column in make().items()}
    assert any(what.startswith("200 steps have") for _, what in found(**content))


def test_numbers_of_columns_and_episodes(rng):
    obs = rng.normal([5.0, -3.0], [1.0, 2.0], (200, 2))
    seen = health.examine_log(from_arrays(**make(observations=obs, next_observations=obs)))
    assert [column.mean for column in seen.columns_of("observation")] == pytest.approx(obs.mean(axis=0))
    assert [column.std for column in seen.columns_of("observation")] == pytest.approx(obs.std(axis=0))
    assert [column.low for column in seen.columns_of("observation")] == pytest.approx(obs.min(axis=0))
    assert (seen.rows, len(seen.lengths), seen.terminals, seen.timeouts) == (200, 10, 0, 10)
    np.testing.assert_allclose(seen.returns, seen.rewards.reshape(10, 20).sum(axis=1), rtol=1e-5)


def test_the_command_prints_draws_and_tells_by_its_exit_code(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("good.npz", **make(terminals=terminal_in_the_middle()))
    assert main(["data", "check", "good.npz"]) == 0
    said = capsys.readouterr().out
    assert "200 steps: 2 observations, 1 action\n" in said
    assert "too few to learn from" in said
    assert (tmp_path / "good-check.png").read_bytes().startswith(b"\x89PNG")
    np.savez("bad.npz", **make(rewards=np.zeros(200)))
    assert main(["data", "check", "bad.npz", "--json", "--out", "page.svg"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["transitions"] == 200
    assert "every reward is 0" in [finding["what"] for finding in told["findings"]]
    assert "<svg" in (tmp_path / "page.svg").read_text(encoding="utf-8")


def test_many_columns_and_few_rows_can_be_drawn(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    for rows, observed, acted in ((2, 1, 1), (3, 60, 20), (1, 3, 1)):
        np.savez(
            "a.npz",
            observations=rng.normal(size=(rows, observed)),
            actions=rng.normal(size=(rows, acted)),
            rewards=np.zeros(rows),
            terminals=np.ones(rows, bool),
        )
        assert main(["data", "check", "a.npz"]) in (0, 1)


def test_the_picture_is_refused_before_the_data_is_read(fails, tmp_path):
    np.savez(tmp_path / "a.npz", **make())
    assert "pictures are .png, .svg, .pdf" in fails("data", "check", tmp_path / "a.npz", "--out", "a.txt")


def test_ranges_that_training_would_refuse(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = ["observation_0,action_0,action_1,reward", *(f"{i % 7},{20 + i},{i},{i % 3}" for i in range(30))]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "columns.toml").write_text("action_low = 0\naction_high = [60, 28]\n", encoding="utf-8")
    assert main(["data", "check", "a.csv", "--columns", "columns.toml", "--json"]) == 1
    told = [finding["what"] for finding in json.loads(capsys.readouterr().out)["findings"]]
    assert "action 'action_1' spans 0 to 29, and its range is 0 to 28, first left in row 29 (line 31), with 29" in told
    assert not any("'action_0' spans" in what for what in told)


@pytest.mark.parametrize(
    ("low", "high", "level", "what", "effect"),
    [
        ((0.0,), (0.1, 2.0), None, "spans", ""),  # 0.1 of float32 is a little more
        ((0.0, 1.0, 2.0), (), "error", "action_low has 3 numbers for 2 actions", "training refuses it"),
        ((), (5.0, 5.0, 5.0), "error", "action_high has 3 numbers for 2 actions", "training refuses it"),
        ((3.0,), (3.0,), "error", "action '0' spans 0 to 0.1, and its range is 3 to 3", "training refuses it"),
        ((0.0,), (0.05, 2.0), "error", "action '0' spans 0 to 0.1, and its range is 0 to 0.05", "training refuses it"),
        ((0.0,), (2.0,), None, "actions are not in [-1, 1]", ""),
        ((0.0,), (), "note", "actions are not in [-1, 1]", "`action_low` and `action_high` set its range"),
        ((), (), "note", "actions are not in [-1, 1]", "`action_low` and `action_high` set its range"),
    ],
)
def test_ranges_are_compared_as_training_does(low, high, level, what, effect):
    actions = np.outer(np.linspace(0, 1, 200), [0.1, 2.0]).astype(np.float32)
    findings = health.examine_log(from_arrays(**make(actions=actions)), low, high).findings
    found = [finding for finding in findings if what in finding.what]
    assert [finding.level for finding in found] == ([level] if level else [])
    assert all(effect in finding.effect for finding in found)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_gaps_in_a_table_are_counted_by_column_though_training_refuses_them(form, tmp_path, capsys):
    path = tmp_path / f"log.{form}"
    if form == "csv":
        rows = ["1,0.1,2,0.5,1", "1,,2.5,0.4,nan", "1,0.3,,NA,2", "2,inf,3,0.2,1", "2,,3.2,0.1,0"]
        path.write_text(
            "\n".join(["episode,observation_a,observation_b,action_0,reward", *rows]) + "\n", encoding="utf-8"
        )
    else:
        observations = [[0.1, 2.0], [None, 2.5], [0.3, None], [np.inf, 3.0], [np.nan, 3.2]]
        content = {"observation_0": observations, "action_0": [0.5, 0.4, None, 0.2, 0.1], "reward": [1, None, 2, 1, 0]}
        pq.write_table(pa.table(content | {"episode": [1, 1, 1, 2, 2]}), path)
    assert main(["data", "check", str(path), "--json", "--no-picture"]) == 1
    columns = {column["name"]: column for column in json.loads(capsys.readouterr().out)["columns"]}
    assert [column["not_finite"] for column in columns.values()] == [3, 1, 1, 1]
    assert [column["first_not_finite"] for column in columns.values()] == [1, 2, 2, 1]
    assert (columns["reward"]["low"], columns["reward"]["high"]) == (0, 2)
    assert main(["data", "check", str(path), "--out", str(tmp_path / "x.png")]) == 1
    assert "3 of 5" in capsys.readouterr().out
    assert main(["train", str(path), "--steps", "10"]) == 2
    assert "NaN, Inf or too large a number, first in row 1" in capsys.readouterr().err


def test_the_first_row_without_a_number_is_told(monkeypatch):
    monkeypatch.setattr("edp.data.arrays.PIECE", 20)
    monkeypatch.setattr("edp.data.log.PIECE", 20)
    content = make()
    content["observations"][[47, 150], 1] = np.nan
    assert any("most in '1', there first in row 47" in what for _, what in found(**content))


FAULTS = {  # a cell that is wrong, in which column
    "a number that is none": ("observation_0", "inf"),
    "an action outside of its range": ("action_0", "9"),
    "a flag of 2": ("terminal", "2"),
    "an empty label": ("episode", ""),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    ("begin", "newest_first", "where"),
    [("", False, "row 7 (line 9)"), ("sep=;\n", False, "row 7 (line 10)"), ("", True, "row 7 (line 9)")],
)
def test_check_and_train_name_the_same_row(fault, begin, newest_first, where, tmp_path, capsys):
    """Also below Excel's line, and in a table that is turned around."""
    order = range(12, 0, -1) if newest_first else range(12)
    rows = [{"observation_0": i, "action_0": i % 2, "reward": i % 5, "terminal": 0, "episode": 1} for i in order]
    column, cell = FAULTS[fault]
    rows[7][column] = cell
    lines = [";".join(rows[0]), *(";".join(map(str, row.values())) for row in rows)]
    (tmp_path / "log.csv").write_text(begin + "\n".join(lines) + "\n", encoding="utf-8")
    words = [str(tmp_path / "log.csv"), *(["--newest-first"] if newest_first else [])]
    columns = tmp_path / "columns.toml"
    columns.write_text("action_low = 0\naction_high = 1\n", encoding="utf-8")
    words += ["--columns", str(columns)]
    assert main(["data", "check", *words, "--no-picture"]) != 0
    checked = capsys.readouterr()
    assert main(["train", *words, "--steps", "10"]) == 2
    assert where in capsys.readouterr().err
    if "range" not in fault:  # the check names the numbers, not their rows
        assert where in checked.out + checked.err


def test_rows_of_several_files_are_named_with_their_file(tmp_path, capsys):
    for name, bad in (("a", "1"), ("b", "inf")):
        lines = ["observation_0,action_0,reward", "1,0,1", "2,1,0", f"{bad},0.5,1", "3,1,2"]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert main(["data", "check", str(tmp_path), "--no-picture"]) == 1
    assert "first in row 2 of b.csv (line 4)" in capsys.readouterr().out
    assert main(["train", str(tmp_path), "--steps", "10"]) == 2
    assert "first in row 2 of b.csv (line 4)" in capsys.readouterr().err


def test_a_flag_that_is_empty_is_refused_by_the_check_too(tmp_path, capsys):
    path = tmp_path / "log.csv"
    path.write_text("observation_0,action_0,reward,terminal\n1,2,3,0\n2,3,4,\n", encoding="utf-8")
    assert main(["data", "check", str(path)]) == 2
    assert "column 'terminal' is empty in row 1 (line 3)" in capsys.readouterr().err


def test_a_broken_sensor_leaves_the_rest_of_the_page(tmp_path, capsys, recwarn):
    for width in (3, 20):  # histograms, and bars
        content = make()
        states = np.random.default_rng(0).standard_normal((200, width))
        states[:, 1], states[::9, 2] = np.nan, np.inf
        np.savez(tmp_path / "a.npz", **(content | {"observations": states, "next_observations": states}))
        words = ["data", "check", str(tmp_path / "a.npz"), "--out", str(tmp_path / "a.png"), "--overwrite"]
        assert main(words) == 1
        assert (tmp_path / "a.png").stat().st_size > 10_000
        out = capsys.readouterr().out
        assert "200 of 200" in out and "23 of 200" in out and "inf" not in out
    assert not [warning for warning in recwarn if "Runtime" in warning.category.__name__]


def test_a_column_of_a_table_may_be_empty_throughout(tmp_path, capsys):
    content = {"observation_0": pa.nulls(5), "observation_1": [1.0, 2, 3, 4, 5], "action_0": [1.0, 2, 3, 4, 5]}
    pq.write_table(pa.table(content), tmp_path / "log.parquet")
    assert main(["data", "check", str(tmp_path / "log.parquet"), "--no-picture"]) == 1
    assert "5 of 5" in capsys.readouterr().out
    assert main(["train", str(tmp_path / "log.parquet"), "--steps", "10"]) == 2


@pytest.mark.parametrize(
    ("column", "level"),
    [
        (1e9 + np.random.default_rng(0).standard_normal(200), "warning"),  # a constant, as float32 sees it
        (1.7e9 + 4 * np.arange(200), "error"),  # seconds
        (1_700_000_000 + 10 * np.arange(200), "warning"),
        (1.7e9 + 1e5 * np.arange(200), None),
        (1.0 + 1e-16 * np.arange(200), None),  # constant
        ((1 + 1e-7 * (np.arange(200) % 2)).astype(np.float32), None),  # as it was recorded
    ],
)
def test_columns_that_float32_cannot_tell_apart(column, level, tmp_path, monkeypatch):
    monkeypatch.setattr("edp.data.arrays.PIECE", 30)
    monkeypatch.setattr("edp.data.log.PIECE", 30)
    content = make(observations=column[:, None], next_observations=None)
    seen = health.examine_log(from_arrays(**content))
    assert seen.columns_of("observation")[0].std == pytest.approx(column.astype(np.float64).std(), rel=1e-6, abs=1e-15)
    coarse = [finding for finding in seen.findings if "float32 has only steps of" in finding.what]
    assert [finding.level for finding in coarse] == ([level] if level else [])
    if level == "error":
        with pytest.raises(UserError, match=r"data: observation 0 spans .* subtract a constant"):
            read_dataset(from_arrays(**content, name="data"))
    else:
        read_dataset(from_arrays(**content))
