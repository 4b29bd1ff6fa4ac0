"""Data of one's own, from the file to the policy in use."""

import json
import os
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import edp
from edp.cli import main
from edp.data import formats, tasks
from edp.data.log import read
from edp.errors import UserError
from edp.runs.directory import Run

SMALL = [
    *("--steps", "40", "--epoch-steps", "20", "--eval-every", "20", "--batch-size", "32", "--episodes", "2"),
    *("--hidden", "16,16", "--critic-hidden", "16,16", "--calls", "3", "--eas", "2", "--policy-target-after", "0"),
]
OPTIONS = {
    **{"steps": 40, "epoch_steps": 20, "eval_every": 20, "batch_size": 32, "hidden": (16, 16), "episodes": 2},
    **{"critic_hidden": (16, 16), "calls": 3, "eas": 2, "policy_target_after": 0},
}
COLUMNS = {
    "observation_columns": ("room_c", "outside_c"),
    "action_columns": ("flow_c", "valve_percent"),
    "reward_column": "comfort",
    "episode_column": "day",
}
LOW, HIGH = np.array([18.0, 0.0]), np.array([75.0, 100.0])


def write_csv(path: Path, days: int = 12, hours: int = 10) -> Path:
    rng = np.random.default_rng(0)
    lines = ["day,room_c,outside_c,flow_c,valve_percent,comfort,operator"]
    for day in range(days):
        room = rng.uniform(15, 22)
        for hour in range(hours):
            outside, flow, valve = 5 + 3 * np.sin(hour), rng.uniform(20, 70), rng.uniform(5, 95)
            lines.append(f"mon{day},{room:.3f},{outside:.3f},{flow:.3f},{valve:.3f},{-abs(room - 21):.3f},ann")
            room += 0.01 * (flow - room) * valve / 100
    path.write_text("\n".join(lines) + "\n")
    return path


def flags(columns):
    return [word for name, value in columns.items() for word in ("--" + name.replace("_", "-"), as_text(value))]


def as_text(value):
    return ",".join(value) if isinstance(value, tuple) else value


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A policy of a CSV in physical units, trained without an environment."""
    folder = tmp_path_factory.mktemp("own")
    file = write_csv(folder / "heating.csv")
    mapping = folder / "columns.toml"
    mapping.write_text(
        'observation_columns = ["room_c", "outside_c"]\naction_columns = ["flow_c", "valve_percent"]\n'
        'reward_column = "comfort"\nepisode_column = "day"\naction_low = [18, 0]\naction_high = [75, 100]\n'
    )
    out = folder / "run"
    assert main(["train", str(file), "--columns", str(mapping), "--out", str(out), "--seeds", "2", *SMALL]) == 0
    return file, out


def test_the_policy_acts_in_the_units_of_the_data(trained):
    file, out = trained
    data = read(formats.open_log(str(file), COLUMNS))
    policy = edp.load_policy(out)
    actions = policy.act(data.obs)
    assert actions.shape == (len(data.obs), 2)
    assert (actions >= LOW).all()
    assert (actions <= HIGH).all()
    assert actions[:, 1].max() > 1.5  # not the numbers between -1 and 1 of the network
    assert policy.act(data.obs[0]).shape == (2,)
    assert policy.units.low == tuple(LOW)


def test_training_and_acting_use_the_same_normalisation(trained):
    file, out = trained
    data, policy = read(formats.open_log(str(file), COLUMNS)), edp.load_policy(out)
    seen = policy.units.observe(data.obs)
    np.testing.assert_allclose(seen.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(seen.std(axis=0), 1, atol=1e-5)


def test_without_an_environment_held_out_episodes_tell_how_it_goes(trained, capsys):
    _, out = trained
    first, last = Run.open(out).validations()
    assert (first["step"], last["step"]) == (20, 40)
    assert set(last["metrics"]) >= {"bc_loss", "critic_loss"}
    assert last["metrics"]["bc_loss"][0] < first["metrics"]["bc_loss"][0] * 1.05
    data, policies = last["actions"]["data"], last["actions"]["policy"]
    assert LOW[0] <= data["low"][0] <= data["q05"][0] <= data["mean"][0] <= data["high"][0] <= HIGH[0]
    assert len(policies) == 2
    assert not Run.open(out).evaluations()
    assert main(["runs", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "finished"


def test_it_resumes_as_if_it_had_never_stopped(trained, tmp_path):
    file, out = trained
    again = tmp_path / "again"
    words = ["train", str(file), *flags(COLUMNS), "--action-low", "18,0", "--action-high", "75,100"]
    assert main([*words, "--out", str(again), "--seeds", "2", *SMALL, "--steps", "20"]) == 0
    assert main(["train", "--resume", str(again), "--steps", "40"]) == 0
    for name in ("metrics.jsonl", "validations.jsonl"):
        assert (again / name).read_bytes() == (out / name).read_bytes()


def test_a_run_without_an_environment_says_so(trained, fails):
    _, out = trained
    assert "has no environment to evaluate in: give one with --env" in fails("eval", out)
    assert "no evaluated checkpoint in it yet" in fails("eval", out, "--checkpoint", "best")


def test_it_can_be_valued_offline(trained, capsys):
    _, out = trained
    words = ["--fqe-steps", "10", "--fqe-rows", "100", "--eas", "1"]
    assert main(["eval", str(out), "--offline", *words]) == 0
    assert "value by FQE" in capsys.readouterr().out


def test_data_that_moved_or_changed_is_not_taken_for_the_run_s(trained, tmp_path, fails):
    file, out = trained
    other = write_csv(tmp_path / "other.csv", days=11)
    assert "not the data that" in fails("train", "--resume", out, "--steps", "60", "--data", other)
    parquet = tmp_path / "same.parquet"
    assert main(["data", "convert", str(file), str(parquet), *flags(COLUMNS)]) == 0
    assert "--action-columns" in fails("train", parquet, "--action-columns", "none")


def test_an_environment_of_one_s_own_needs_the_user_s_word(trained, fails, tmp_path):
    """A run directory names its environment; the code behind a name is not imported for that."""
    _, out = trained
    copy = tmp_path / "copy"
    copy.mkdir()
    config = json.loads((out / "config.json").read_text())
    config["own_task"]["env"] = "antigravity_of_somebody:Env-v0"
    (copy / "config.json").write_text(json.dumps(config))
    (out / "checkpoints").rename(copy / "checkpoints")
    try:
        assert "was trained with --env antigravity_of_somebody:Env-v0" in fails("eval", copy)
        assert "No module named 'antigravity_of_somebody'" in fails(
            "eval", copy, "--env", "antigravity_of_somebody:Env-v0"
        )
    finally:
        (copy / "checkpoints").rename(out / "checkpoints")


class Room(gymnasium.Env):
    """Observations of several parts, and actions in units of their own."""

    def __init__(self, goal=21.0):
        self.goal = goal
        box = gymnasium.spaces.Box
        self.observation_space = gymnasium.spaces.Dict({"room": box(0, 40, (1,)), "goal": box(0, 40, (2,))})
        self.action_space = box(np.float32(LOW), np.float32(HIGH))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.room, self.step_number = self.np_random.uniform(15, 22), 0
        return self.seen, {}

    @property
    def seen(self):
        return {"room": np.float32([self.room]), "goal": np.float32([self.goal, 20.0])}

    def step(self, action):
        assert self.action_space.contains(np.asarray(action, np.float32)), action
        self.room += 0.01 * (action[0] - self.room) * action[1] / 100
        self.step_number += 1
        return self.seen, -abs(self.room - self.goal), False, False, {}


gymnasium.register("Room-v0", f"{__name__}:Room", max_episode_steps=15)
gymnasium.register("EndlessRoom-v0", f"{__name__}:Room")


@pytest.fixture
def minari_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


def test_a_minari_set_trains_and_is_evaluated_with_its_reference_scores(minari_folder, tmp_path, capsys):
    """Collected with Minari's own collector."""
    import minari

    env = minari.DataCollector(gymnasium.make("Room-v0"))
    returns = []
    for seed in range(4):
        env.reset(seed=seed)
        over, total = False, 0.0
        while not over:
            _, reward, terminal, timeout, _ = env.step(env.action_space.sample())
            over, total = terminal or timeout, total + reward
        returns.append(total)
    env.create_dataset("mine/room-v0", ref_min_score=-60.0, ref_max_score=0.0)
    out = tmp_path / "run"
    assert main(["train", "minari:mine/room-v0", "--out", str(out), *SMALL]) == 0
    said = capsys.readouterr().out
    assert "normalised score" in said
    row = Run.open(out).training_evaluations()[-1]
    np.testing.assert_allclose(np.array(row["scores"]), 100 * (np.array(row["returns"]) + 60) / 60)
    assert row["lengths"] == [[15, 15]]
    assert f"{100 * (np.mean(returns) + 60) / 60:.1f}" in said
    policy = edp.load_policy(out)
    assert policy.dims == (3, 2)  # goal before room: in the order of their names
    assert policy.units.low == tuple(LOW)
    assert main(["eval", str(out), "--episodes", "1"]) == 0


STORAGE = "minari.dataset._storages.hdf5_storage.HDF5Storage.update_episodes"


@pytest.mark.parametrize(("to", "writer"), [("minari:a/b/c-v0", STORAGE), ("c.npz", "numpy.savez_compressed")])
def test_a_conversion_that_is_ended_leaves_nothing_behind(to, writer, minari_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = edp.write(edp.record("Room-v0", episodes=2), "a.hdf5")
    with monkeypatch.context() as patch:
        patch.setattr(writer, lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(SystemExit) as ended:
            main(["data", "convert", file, to])
    assert ended.value.code == 143
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / file]
    assert main(["data", "convert", file, to]) == 0
    assert read(formats.open_log(to)).obs.shape == (30, 3)


def test_what_a_killed_conversion_leaves_is_in_nobody_s_way(minari_folder, tmp_path):
    log = edp.record("Room-v0", episodes=2)
    (tmp_path / "minari" / ".edp-killed" / "mine" / "room-v0" / "data").mkdir(parents=True)
    assert main(["data", "convert", edp.write(log, tmp_path / "a.hdf5"), "minari:mine/room-v0"]) == 0
    import minari

    assert list(minari.list_local_datasets()) == ["mine/room-v0"]
    assert minari.load_dataset("mine/room-v0").total_steps == 30


@pytest.mark.parametrize("to", ["minari:mine/copy-v0", "copy.hdf5"])
def test_a_copy_keeps_the_environment_with_its_options(to, minari_folder, tmp_path, monkeypatch):
    import minari

    monkeypatch.chdir(tmp_path)
    env = minari.DataCollector(gymnasium.make("Room-v0", goal=19.0, max_episode_steps=7))
    env.reset(seed=0)
    while not env.step(env.action_space.sample())[3]:
        pass
    env.create_dataset("mine/room-v1", ref_min_score=-60.0, ref_max_score=0.0)
    assert main(["data", "convert", "minari:mine/room-v1", to]) == 0
    first, copy = formats.open_log("minari:mine/room-v1"), formats.open_log(to)
    assert first.env_options == {"goal": 19.0, "max_episode_steps": 7}
    assert (copy.env, copy.env_options, copy.reference) == (first.env, first.env_options, first.reference)
    assert gymnasium.spec("Room-v0").kwargs == {}


def test_a_format_without_a_place_for_the_environment_says_so(tmp_path, capsys):
    recorder = edp.Recorder(gymnasium.make("Room-v0", goal=19.0))
    recorder.reset(seed=0)
    recorder.step(np.float32([30.0, 50.0]))
    file = edp.write(recorder.log(), tmp_path / "a.hdf5")
    assert formats.open_log(file).env_options == {"goal": 19.0, "max_episode_steps": 15}
    assert main(["data", "convert", file, str(tmp_path / "a.csv")]) == 0
    assert "a.csv: will not say that this was recorded in Room-v0 (.hdf5 and" in capsys.readouterr().err


def test_an_environment_that_minari_cannot_know_is_said(minari_folder, tmp_path, capsys):
    rows = np.zeros((3, 2)), np.zeros((3, 1)), np.zeros(3), np.array([False, False, True])
    file = edp.write(edp.from_arrays(*rows, env="Elsewhere-v0"), tmp_path / "a.hdf5")
    assert main(["data", "convert", file, "minari:mine/elsewhere-v0"]) == 0
    assert "recorded in Elsewhere-v0 (it is not registered here)" in capsys.readouterr().err


@pytest.mark.parametrize("options", [{"env_id": "x"}, {"disable_env_checker": 1}, {"nothing": 3}])
def test_options_of_an_environment_that_it_does_not_have(options, tmp_path, fails):
    log = edp.record("Room-v0", episodes=2)
    file = edp.write(replace(log, env_options=options), tmp_path / "a.hdf5")
    assert "environment 'Room-v0': TypeError" in fails("train", file, "--out", tmp_path / "run")


def test_environments_are_not_shown_while_they_are_evaluated():
    log = replace(edp.record("Room-v0", episodes=1), env_options={"render_mode": "human", "goal": 19.0})
    assert json.loads(tasks.own("a.hdf5", log, "").env_options) == {"goal": 19.0}


def test_an_environment_whose_options_cannot_be_written_down_is_not_named():
    recorder = edp.Recorder(gymnasium.make("Room-v0", goal=np.float32(19.0)))
    recorder.reset(seed=0)
    recorder.step(np.float32([30.0, 50.0]))
    assert recorder.log().env == ""


def test_recording_a_callable_and_training_on_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("operator_of_mine.py").write_text("def act(obs):\n    return [40.0, 10 * obs[2] % 100]\n")
    words = ["data", "record", "a.npz", "--env", "Room-v0", "--policy", "operator_of_mine:act", "--episodes", "3"]
    assert main(words) == 0
    assert "a.npz: 45 steps" in capsys.readouterr().out
    data = read(formats.open_log("a.npz"))
    np.testing.assert_allclose(data.action[:, 0], 40.0)
    np.testing.assert_allclose(data.action[:, 1], 10 * data.obs[:, 2] % 100, rtol=1e-5)
    assert (data.not_done == 1).all()
    assert len(data.returns) == 3


@pytest.fixture
def short(monkeypatch):
    """What takes 10,000 steps otherwise."""
    for module in ("edp.envs.make", "edp.data.synthesis.record", "edp.acting.evaluator", "edp.cli.display"):
        monkeypatch.setattr(f"{module}.MOST_STEPS", 30)


def test_recording_an_environment_without_an_end(short, tmp_path, capsys, fails):
    words = ["data", "record", str(tmp_path / "a.npz"), "--env", "EndlessRoom-v0", "--episodes", "2"]
    assert main(words) == 0
    captured = capsys.readouterr()
    assert "60 steps" in captured.out
    assert "2 of 2 episodes were cut off after 30 steps, for the environment has no limit" in captured.err
    assert main([*words, "--max-steps", "7"]) == 0
    captured = capsys.readouterr()
    assert "14 steps" in captured.out
    assert "cut off" not in captured.err
    assert "--max-steps must be at least 1" in fails(*words, "--max-steps", "0")
    with pytest.warns(UserWarning, match="1 of 1 episodes were cut off"):
        assert edp.record(Room(), episodes=1).size == 30
    assert edp.record(Room(), episodes=1, max_steps=5).size == 5
    assert edp.record("Room-v0", episodes=1).size == 15


def test_evaluating_in_an_environment_without_an_end(short, tmp_path, capsys):
    out, file = tmp_path / "run", edp.write(edp.record("Room-v0", episodes=4), tmp_path / "a.npz")
    assert main(["train", file, "--env", "EndlessRoom-v0", "--out", str(out), *SMALL]) == 0
    said = "cut off after 30 steps, for the environment has no limit of its own (max_episode_steps): 2 episodes"
    assert said in capsys.readouterr().out
    assert Run.open(out).training_evaluations()[-1]["lengths"] == [[30, 30]]
    assert main(["eval", str(out)]) == 0
    assert said in capsys.readouterr().out


def test_environments_are_looked_for_in_the_current_folder(tmp_path, monkeypatch, fails):
    monkeypatch.chdir(tmp_path)
    register = f"import gymnasium\ngymnasium.register('Here-v0', '{__name__}:Room', max_episode_steps=4)\n"
    Path("room_of_mine.py").write_text(register)
    words = ["a.npz", "--env", "room_of_mine:Here-v0", "--episodes", "3"]
    assert main(["data", "record", *words]) == 0
    monkeypatch.delitem(sys.modules, "room_of_mine")
    assert main(["train", "a.npz", "--env", "room_of_mine:Here-v0", "--out", "run", *SMALL]) == 0
    monkeypatch.delitem(sys.modules, "room_of_mine")
    assert main(["eval", "run", "--env", "room_of_mine:Here-v0"]) == 0
    assert str(tmp_path) not in sys.path
    monkeypatch.delitem(sys.modules, "room_of_mine")
    with pytest.raises(UserError, match="No module named 'room_of_mine'"):
        edp.record("room_of_mine:Here-v0")  # a program says where its modules are


def test_actions_outside_of_the_range_are_noted_once():
    said = []
    log = edp.record("Pendulum-v1", lambda obs: [5.0 * obs[0]], episodes=1, max_steps=50, on_note=said.append)
    (steps,) = log.pieces()
    count = int((np.abs(steps.actions) > 2).sum())
    assert count
    assert said == [
        f"{count} of 50 actions are outside of the environment's range, and are recorded as they were given"
    ]
    edp.record("Pendulum-v1", episodes=1, max_steps=50, on_note=said.append)
    assert len(said) == 1


def test_recording_is_the_same_for_the_same_seed():
    first, second, other = (read(edp.record("Room-v0", episodes=2, seed=seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.action, second.action)
    np.testing.assert_array_equal(first.obs, second.obs)
    assert (first.action != other.action).any()


def test_the_recorder_keeps_what_others_do():
    recorder = edp.Recorder(gymnasium.make("Room-v0"))
    with pytest.raises(UserError, match="nothing has been recorded"):
        recorder.log()
    recorder.reset(seed=0)
    for _ in range(4):
        recorder.step(np.float32([30.0, 50.0]))
    recorder.reset(seed=1)  # an episode that is left is cut off
    recorder.step(np.float32([30.0, 50.0]))
    data = read(recorder.log())
    np.testing.assert_array_equal(data.episode, [0, 0, 0, 0, 1])
    np.testing.assert_array_equal(data.next_obs[0], data.obs[1])


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("nowhere:act", "--policy nowhere:act: ModuleNotFoundError"),
        ("math:pi", "--policy math:pi: not something that can be called"),
        ("math:none", "--policy math:none: AttributeError"),
        ("math", "--policy math: neither a run directory nor module:function"),
        ("builtins:len", "the policy gave 3 for"),
    ],
)
def test_policies_that_are_none(policy, message, fails, tmp_path):
    assert message in fails("data", "record", tmp_path / "a.npz", "--env", "Room-v0", "--policy", policy)
    assert not (tmp_path / "a.npz").exists()


class Breaking(Room):
    def step(self, action):
        return 1 / 0


class Wrong(Room):
    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample()


gymnasium.register("Breaking-v0", f"{__name__}:Breaking", max_episode_steps=15, disable_env_checker=True)
gymnasium.register("Wrong-v0", f"{__name__}:Wrong", max_episode_steps=15, disable_env_checker=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policy", "mine_a:broken"], "the policy, in episode 0: ZeroDivisionError: division by zero"),
        (["--policy", "mine_a:of_two"], "the policy, in episode 0: TypeError: of_two() missing 1 required"),
        (["--policy", "mine_a:Restless"], "the policy's reset, in episode 0: KeyError"),
        (["--policy", "mine_b:act"], "--policy mine_b:act: ZeroDivisionError: division by zero"),
        (["--env", "mine_b:X-v0"], "ZeroDivisionError: division by zero"),
        (["--env", "mine_c:X-v0"], "SyntaxError"),
        (["--env", "Breaking-v0"], "the environment, in episode 0: ZeroDivisionError: division by zero"),
        (["--env", "Wrong-v0"], "the environment, in episode 0: "),
    ],
)
def test_code_of_one_s_own_that_fails_is_told_in_one_line(words, message, tmp_path, monkeypatch, fails):
    monkeypatch.chdir(tmp_path)
    Path("mine_a.py").write_text(
        "def broken(obs):\n    return 1 / 0\n\ndef of_two(obs, time):\n    return obs\n\n"
        "class Restless:\n    def reset(self):\n        {}['none']\n\n"
        "    def __call__(self, obs):\n        return obs\n"
    )
    Path("mine_b.py").write_text("1 / 0\n")
    Path("mine_c.py").write_text("def (\n")
    assert message in fails("data", "record", "a.npz", "--env", "Room-v0", *words)
    assert not Path("a.npz").exists()


def test_an_evaluation_of_nothing_but_failures_is_one(tmp_path, capsys):
    out, file = tmp_path / "run", edp.write(edp.record("Room-v0", episodes=4), tmp_path / "a.npz")
    assert main(["train", file, "--out", str(out), *SMALL]) == 0
    assert main(["eval", str(out), "--env", "Breaking-v0"]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().out
    assert main(["eval", str(out), "--env", "Room-v0"]) == 0
    head = capsys.readouterr().out
    assert "return" in head
    assert "score" not in head


def test_from_python_arrays_to_a_policy(tmp_path):
    rng = np.random.default_rng(0)
    episodes = [
        {
            "observations": rng.normal(size=(9, 3)),
            "actions": rng.uniform(LOW, HIGH, (8, 2)),
            "rewards": rng.normal(size=8),
            "terminated": bool(number % 2),
        }
        for number in range(6)
    ]
    log, events = edp.from_episodes(episodes), []
    policy = edp.fit(log, tmp_path / "run", algo="iql", on_event=events.append, n_step=3, **OPTIONS)
    assert policy.act(rng.normal(size=(5, 3))).shape == (5, 2)
    assert {type(event).__name__ for event in events} == {"Compiled", "Epoch", "Validation"}
    place = edp.write(log, tmp_path / "mine.npz")
    assert main(["train", "--resume", str(tmp_path / "run"), "--steps", "60", "--data", place]) == 0


def an_episode(**changed):
    found = {"observations": np.zeros((5, 2)), "actions": np.zeros((5, 1)), "rewards": np.zeros(5), "terminated": True}
    return {key: value for key, value in (found | changed).items() if value is not None}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"terminated": [False] * 5}, "episode 0: terminated must be one True or False for the whole episode"),
        ({"terminated": np.zeros(5, bool)}, "not an array of shape (5,)"),
        ({"terminated": "False"}, "not 'False'"),
        ({"terminated": np.nan}, "not nan"),
        ({"terminated": 0}, "not 0"),
        ({"truncated": [True]}, "truncated must be one True or False"),
        ({"terminated": None}, "has no terminated"),
        ({"termnated": True}, "unknown key 'termnated': did you mean 'terminated'?"),
        ({"infos": {}}, "unknown key 'infos'"),
        ({"observations": np.zeros((6, 2)), "next_observations": np.zeros((5, 2))}, "give one of them"),
        ({"observations": np.zeros(5)}, "observations has shape (5,): one row a step, so (5, 1) for one number"),
    ],
)
def test_episodes_that_are_not_understood(changed, message):
    with pytest.raises(UserError, match=re.escape(message)):
        edp.from_episodes([an_episode(**changed)])


def test_an_episode_that_is_no_dict():
    with pytest.raises(UserError, match="episode 1: must be a dict"):
        edp.from_episodes([an_episode(), (np.zeros((5, 2)), np.zeros((5, 1)))])  # pyright: ignore


@pytest.mark.parametrize(
    ("flags", "ended"),
    [
        ({"terminated": np.bool_(True)}, True),
        ({"terminated": np.True_, "truncated": True}, True),
        ({"terminated": False, "truncated": False}, False),
        ({"terminated": None, "truncated": True}, False),
        ({"terminated": None, "truncated": False}, True),
    ],
)
def test_either_flag_of_an_episode_tells_how_it_ended(flags, ended):
    (steps,) = edp.from_episodes([an_episode(**flags)]).pieces()
    np.testing.assert_array_equal(steps.terminals, [False] * 4 + [ended])
    np.testing.assert_array_equal(steps.timeouts, [False] * 4 + [not ended])


def test_episodes_may_have_the_states_after_their_steps(rng):
    after = rng.normal(size=(5, 2))
    data = read(edp.from_episodes([an_episode(next_observations=after, terminated=False)]))
    np.testing.assert_array_equal(data.next_obs, after.astype(np.float32))


def test_lists_are_as_good_as_tuples(tmp_path):
    file = write_csv(tmp_path / "a.csv")
    lists = {name: list(value) if isinstance(value, tuple) else value for name, value in COLUMNS.items()}
    np.testing.assert_array_equal(read(edp.open_log(file, lists)).obs, read(edp.open_log(file, COLUMNS)).obs)
    policy = edp.fit(file, tmp_path / "run", columns=lists, **OPTIONS | {"hidden": [16, 16], "critic_hidden": [16, 16]})
    assert policy.spec.policy.hidden == (16, 16)
    assert edp.load_policy(tmp_path / "run").act(np.zeros(2)).shape == (2,)
    with pytest.raises(UserError, match="--observation-columns must be a list of names, not 'room_c'"):
        edp.open_log(file, COLUMNS | {"observation_columns": "room_c"})
    with pytest.raises(UserError, match="--hidden must be a list of whole numbers, not 16"):
        edp.fit(file, tmp_path / "other", columns=COLUMNS, hidden=16)


def test_public_names_are_shown_and_there():
    assert {"fit", "UserError", "load_policy"} <= set(dir(edp))
    assert edp.UserError is UserError
    assert all(getattr(edp, name) for name in dir(edp))


def test_wrong_words_in_python_are_the_user_s_errors_too(trained, tmp_path):
    file, run = trained
    rows = np.zeros((5, 2)), np.zeros((5, 1)), np.zeros(5), np.zeros(5, bool)
    for call, message in (
        (lambda: edp.open_log(file, {"observation_columnz": ["a"]}), "did you mean 'observation_columns'?"),
        (lambda: edp.fit(file, tmp_path / "run", columns=COLUMNS, step=3), "'step': did you mean 'steps'?"),
        (lambda: edp.fit(file, tmp_path / "run", columns=COLUMNS, steps="abc"), "--steps must be a whole number"),
        (lambda: edp.load_policy(run, easy=3), "'easy': did you mean 'eas'?"),
        (lambda: edp.from_arrays(*rows[:3], None), "arrays: has no terminals"),
        (lambda: edp.from_arrays(*rows[:2], None, rows[3]), "arrays: has no rewards"),
        (lambda: edp.from_arrays(np.zeros(5), *rows[1:]), "observations has shape (5,): one row a step, so (5, 1)"),
    ):
        with pytest.raises(UserError, match=re.escape(message)):
            call()
    assert not (tmp_path / "run").exists()


def test_data_and_options_that_do_not_go_together(tmp_path, fails):
    file = write_csv(tmp_path / "a.csv")
    assert "which columns are the observations? Say it with --observation-columns" in fails("train", file)
    assert "did you mean 'room_c'?" in fails("train", file, *flags(COLUMNS | {"observation_columns": ("room",)}))
    assert "is data itself" in fails("train", file, "--data", file, *flags(COLUMNS))
    assert "--env is for data of your own" in fails("train", "hopper-medium-v2", "--env", "Room-v0")
    assert "the data has 2 observations and 2 actions, but Room-v0 has 3 and 2" in fails(
        "train", file, "--env", "Room-v0", *flags(COLUMNS)
    )
    assert "its actions are Discrete" in fails("train", file, "--env", "CartPole-v1", *flags(COLUMNS))
    assert "unknown task 'hoper-medium-v2'" in fails("train", "hoper-medium-v2")
    assert "no such file" in fails("train", tmp_path / "none.csv")
    assert "--n-step would change nothing" in fails("train", file, *flags(COLUMNS), "--algo", "bc", "--n-step", "3")
    assert "--observation-columns is for tables" in fails("train", "a.npz", "--observation-columns", "x")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("command", [("data", "check"), ("train",)])
def test_places_that_are_no_data(command, tmp_path, monkeypatch, fails):
    monkeypatch.chdir(tmp_path)
    for name in ("a.tsv", "a.csv.gz", "notes.docx"):
        Path(name).write_text("a\tb\n1\t2\n")
    for name, message in (
        ("nodir/", "nodir/: no such file or folder"),
        ("none.tsv", "none.tsv: no such file or folder"),
        ("a.tsv", "a.tsv: rename it to .csv (tabs are fine)"),
        ("a.csv.gz", "a.csv.gz: unpack it first"),
        ("notes.docx", "notes.docx: data is .hdf5, .h5, .npz, .csv, .parquet, a folder of tables or minari:NAME"),
    ):
        assert message in fails(*command, name)


def test_rewards_that_say_nothing_are_noted(tmp_path, capsys):
    file = write_csv(tmp_path / "a.csv")
    words = flags({name: value for name, value in COLUMNS.items() if name != "reward_column"})
    assert main(["train", str(file), *words, "--out", str(tmp_path / "run"), *SMALL, "--quiet"]) == 0
    assert "every reward is 0: nothing tells good actions from bad ones" in capsys.readouterr().err
