"""The worked example for data of one's own: a simulator, its logs, training on them, a picture (examples/heating)."""

import csv
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import edp
from edp.cli import main
from edp.cli.parser import Parser, add_columns, columns_of
from edp.data.dataset import read_dataset
from edp.data.formats import open_log

FOLDER = Path(__file__).parents[2] / "examples" / "heating"
sys.path.insert(0, str(FOLDER))

import logs  # noqa: E402
import picture  # noqa: E402

import heating  # noqa: E402

DAYS = 24
SMALL = ["--hidden", "16", "--critic-hidden", "16", "--calls", "3", "--steps", "40", "--batch-size", "32"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("logs") / "heating.csv"
    logs.main(["--out", str(path), "--days", str(DAYS)])
    return path


@pytest.fixture(scope="module")
def rows(table):
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


def train(table, out, *more):
    words = [table, "--columns", FOLDER / "columns.toml", *SMALL, *more, "--out", out]
    assert main(["train", *map(str, words)]) == 0
    return out


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    return train(table, tmp_path_factory.mktemp("runs") / "run")


def numbers(rows, names):
    return np.array([[float(row[name]) for name in names] for row in rows])


class TestSimulator:
    def test_gymnasium_finds_nothing_wrong(self, recwarn):
        check_env(gymnasium.make("Heating-v0").unwrapped)
        said = [str(found.message) for found in recwarn]
        assert not [text for text in said if "symmetric and normalized" not in text]  # physical units are meant

    def test_an_episode_is_cut_off_and_never_ends_by_itself(self):
        env = gymnasium.make("Heating-v0")
        env.reset(seed=0)
        steps = [env.step(env.action_space.sample()) for _ in range(heating.STEPS)]
        assert not any(step[2] for step in steps)
        assert [step[3] for step in steps] == [False] * (heating.STEPS - 1) + [True]

    @pytest.mark.parametrize("seed", range(3))
    def test_energy_is_neither_made_nor_lost(self, seed):
        env = gymnasium.make("Heating-v0")
        env.reset(seed=seed)
        env.action_space.seed(seed)
        for _ in range(heating.STEPS):
            obs, _, _, _, info = env.step(env.action_space.sample())
            assert info["stored_kwh"] == pytest.approx(info["heat_kwh"] + info["gained_kwh"] - info["lost_kwh"])
            assert 0 <= info["heat_kwh"] <= heating.STRONGEST * heating.STEP_HOURS
            assert info["electricity_kwh"] >= info["heat_kwh"] / 6
            assert env.observation_space.contains(obs)

    def test_a_house_without_heating_gets_cold_for_nothing_but_discomfort(self):
        env = gymnasium.make("Heating-v0")
        first, _ = env.reset(seed=0)
        steps = [env.step(np.array([75.0, 0.0], np.float32)) for _ in range(heating.STEPS)]
        assert steps[-1][0][0] < first[0] - 3
        assert sum(step[4]["cost_eur"] for step in steps) == 0
        assert steps[-1][1] == -steps[-1][4]["discomfort_eur"] < 0

    def test_hotter_water_heats_more_and_needs_more_electricity_for_it(self):
        found = []
        for flow in (40.0, 60.0):
            env = gymnasium.make("Heating-v0")
            env.reset(seed=0)
            steps = [env.step(np.array([flow, 50.0], np.float32)) for _ in range(heating.STEPS)]
            heat, electricity = (sum(step[4][name] for step in steps) for name in ("heat_kwh", "electricity_kwh"))
            found.append((steps[-1][0][0], heat, electricity / heat))
        assert all(cool < hot for cool, hot in zip(*found, strict=True))

    def test_rewards_are_euros(self):
        env = gymnasium.make("Heating-v0")
        obs, _ = env.reset(seed=0)
        _, reward, _, _, info = env.step(np.array([60.0, 80.0], np.float32))
        assert info["cost_eur"] == pytest.approx(info["electricity_kwh"] * obs[-1], rel=1e-5)
        assert reward == -info["cost_eur"] - info["discomfort_eur"]


class TestLogs:
    def test_have_a_row_for_each_half_hour_of_turns(self, rows):
        assert len(rows) == DAYS * 48
        assert [row["operator"] for row in rows[:: heating.STEPS]] == ["steady", "pulses"] * (DAYS // 6)

    def test_show_two_ways_of_acting_in_like_states(self, table):
        state, near = picture.like_midnight(table)
        assert len(state) == len(heating.OBSERVATIONS)
        steady, pulses = (np.median(near[name], axis=0) for name in ("steady", "pulses"))
        assert pulses[0] - steady[0] > 10, "the flow is hotter"
        assert pulses[1] - steady[1] > 20, "and the valve is further open"

    def test_pulses_stop_where_electricity_is_dear(self, rows):
        dear = [row for row in rows if heating.tariff(int(row["time"][11:13])) == heating.DEAR]
        found = {
            name: np.median(numbers([row for row in dear if row["operator"] == name], heating.ACTIONS), axis=0)
            for name in ("steady", "pulses")
        }
        assert (found["pulses"] < found["steady"] - 10).all()

    def test_say_the_same_each_time(self, table, tmp_path):
        logs.main(["--out", str(tmp_path / "again.csv"), "--days", str(DAYS)])
        assert (tmp_path / "again.csv").read_bytes() == table.read_bytes()


def test_no_log_is_overwritten_unasked(tmp_path):
    path = tmp_path / "heating.csv"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(SystemExit):
        logs.main(["--out", str(path), "--days", "6"])
    assert path.read_text(encoding="utf-8") == "mine"
    logs.main(["--out", str(path), "--days", "6", "--overwrite"])
    assert path.stat().st_size > 1000


def test_the_mapping_fits_the_logs(table, rows):
    parser = Parser("edp train", "")
    add_columns(parser)
    meaning, ranges, origins = columns_of(parser.parse(["--columns", str(FOLDER / "columns.toml")]))
    assert ranges == {"action_low": heating.LOW, "action_high": heating.HIGH}
    assert origins == dict.fromkeys([*meaning, *ranges], "columns.toml")
    log = open_log(str(table), meaning)
    assert log.observation_names == heating.OBSERVATIONS
    assert log.action_names == heating.ACTIONS
    assert log.left_out == ("time",)
    assert log.operator_names == ("pulses", "steady")
    dataset = read_dataset(log)
    turns = DAYS // heating.DAYS
    assert dataset.obs.shape == (turns * (heating.STEPS - 1), len(heating.OBSERVATIONS))  # the last states are unknown
    assert dataset.not_done.all()
    rewards = numbers(rows, ["reward_eur"]).reshape(turns, -1).sum(axis=1)
    np.testing.assert_allclose(dataset.returns, rewards, rtol=1e-5)


class TestTraining:
    def test_without_an_environment(self, run, table, rows):
        """The policy takes and gives physical numbers."""
        policy = edp.load_policy(run)
        actions = policy.act(numbers(rows, heating.OBSERVATIONS)[::7])
        assert actions.shape == (len(rows[::7]), 2)
        assert (actions >= heating.LOW).all()
        assert (actions <= heating.HIGH).all()
        assert np.ptp(actions, axis=0).min() > 1, "and not those of the networks"

    def test_with_the_simulator(self, table, tmp_path, capsys):
        train(table, tmp_path / "run", "--algo", "iql", "--env", "heating:Heating-v0", "--episodes", "2")
        printed = capsys.readouterr().out
        assert "held out: " in printed
        assert "return -" in printed
        assert "return" in printed

    def test_picture(self, run, table, tmp_path, capsys):
        out = tmp_path / "heating.png"
        picture.main([str(run), "--data", str(table), "--out", str(out), "--episodes", "3"])
        assert out.read_bytes()[1:4] == b"PNG"
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines[1:4]] == ["steady", "pulses", "policy"]
        assert all("of 3 episodes" in line for line in lines[4:6])
