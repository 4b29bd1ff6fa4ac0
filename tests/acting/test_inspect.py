"""What a report sees of a policy: an episode, its values, the choices of EAS, and actions beside the data's."""

import json
import shutil

import gymnasium
import h5py
import numpy as np
import pytest

from edp.acting import inspect
from edp.cli import main
from edp.data import tasks
from edp.report import behaviour, page
from edp.report.collect import read_runs

SMALL = ["--steps", "4", "--epoch-steps", "2", "--hidden", "8", "--batch-size", "16", "--episodes", "1", "--quiet"]


def train(data, folder, *words, task="hopper-medium-v2"):
    assert main(["train", task, "--data", str(data), "--out", str(folder), *SMALL, *words]) == 0
    return folder


def seen(folder):
    return json.loads((folder / "look.json").read_text(encoding="utf-8"))


def report(*folders, out):
    assert main(["report", *map(str, folders), "--look", "--out", str(out)]) == 0
    return out.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def trained(hopper_file, tmp_path_factory):
    words = ("--critic-hidden", "8", "--eas", "6", "--eas-after", "0", "--calls", "3", "--seeds", "2")
    return train(hopper_file, tmp_path_factory.mktemp("runs") / "edp", *words)


def test_an_episode_with_its_values_and_choices(trained, tmp_path):
    text = report(trained, out=tmp_path / "report.html")
    found = seen(trained)
    episode, low, high = found["episode"], *(np.array(found["episode"][name]) for name in ("q_low", "q_high"))
    assert found["step"] == 4 and found["seed"] == 0 and episode["length"] > 3
    value = np.array(episode["q"])
    assert len(value) == len(episode["at"]) == len(episode["rewards"])
    assert (low <= value).all() and (value <= high).all() and (low < high).any()
    for choice in episode["choices"]:
        assert len(choice["q"]) == len(choice["actions"]) == 6
        assert 0 <= choice["chosen"] < 6 and np.abs(choice["actions"]).max() <= 1
        at = episode["at"].index(choice["at"])
        assert choice["q"][choice["chosen"]] == pytest.approx(value[at], rel=1e-4)
    shares = np.array(found["actions"]["policy"][0]["histogram"])
    assert shares.shape == (3, 24) and shares.sum(axis=1) == pytest.approx(1, abs=0.01)
    assert found["map"] is None and found["paths"] == []
    assert "One episode" in text and '"choices":[{' in text


def test_it_is_looked_at_once(trained, tmp_path):
    report(trained, out=tmp_path / "a.html")
    before = (trained / "look.json").stat().st_mtime_ns
    report(trained, out=tmp_path / "b.html")
    assert (trained / "look.json").stat().st_mtime_ns == before


def test_policies_without_values_or_without_data(hopper_file, tmp_path, capsys):
    cloned = train(hopper_file, tmp_path / "bc", "--algo", "bc", "--eas", "1", "--calls", "3")
    words = ("--algo", "dt", "--policy", "transformer", "--eas", "1", "--width", "8", "--layers", "1", "--heads", "1")
    remembering = tmp_path / "dt"
    command = ["train", "hopper-medium-v2", "--data", str(hopper_file), "--out", str(remembering), "--quiet"]
    assert main([*command, "--steps", "4", "--epoch-steps", "2", "--episodes", "1", *words]) == 0
    moved = tmp_path / "moved.hdf5"
    moved.write_bytes(hopper_file.read_bytes())
    elsewhere = train(moved, tmp_path / "elsewhere", "--algo", "bc", "--eas", "1", "--calls", "3")
    moved.unlink()
    capsys.readouterr()
    text = report(cloned, remembering, elsewhere, out=tmp_path / "report.html")
    assert "q" not in seen(cloned)["episode"] and seen(cloned)["episode"]["length"] > 3 and "actions" in seen(cloned)
    assert seen(remembering) == {"step": 4, "seed": 0}
    assert "actions" not in seen(elsewhere)
    assert "not compared with the data's" in capsys.readouterr().err
    assert "dt + transformer" in text


class Broken(gymnasium.Wrapper):
    def step(self, action):
        raise RuntimeError("out of order")


def test_an_environment_that_fails_is_told_and_passed_over(hopper_file, tmp_path, monkeypatch, capsys):
    cloned = train(hopper_file, tmp_path / "bc", "--algo", "bc", "--eas", "1", "--calls", "3")
    make_env = tasks.Task.make_env
    monkeypatch.setattr(tasks.Task, "make_env", lambda task, **options: Broken(make_env(task, **options)))
    report(cloned, out=tmp_path / "report.html")
    assert "its environment failed (RuntimeError: out of order) (so it is not inspected)" in capsys.readouterr().err
    assert not (cloned / "look.json").exists()


def test_a_run_that_cannot_be_written_to_is_passed_over(hopper_file, tmp_path, capsys):
    cloned = train(hopper_file, tmp_path / "bc", "--algo", "bc", "--eas", "1", "--calls", "3")
    (cloned / "look.json").mkdir()
    report(cloned, out=tmp_path / "report.html")
    assert "cannot write here" in capsys.readouterr().err


def test_paths_in_a_maze(tmp_path, monkeypatch):
    rng, n = np.random.default_rng(0), 200
    with h5py.File(tmp_path / "ant.hdf5", "w") as file:
        file["observations"], file["actions"] = rng.standard_normal((n, 29)), rng.uniform(-1, 1, (n, 8))
        file["rewards"], file["terminals"] = np.zeros(n), np.zeros(n, bool)
        file["timeouts"] = np.arange(n) % 50 == 49
    monkeypatch.setattr(tasks.TASKS["antmaze-umaze-v0"].__class__, "make_env", shortened)
    words = ("--critic-hidden", "8", "--calls", "3", "--eas", "2")
    run = train(tmp_path / "ant.hdf5", tmp_path / "run", *words, task="antmaze-umaze-v0")
    report(run, out=tmp_path / "report.html")
    found = seen(run)
    assert len(found["paths"]) == inspect.PATHS and found["map"]["cell"] == 4.0
    assert len(found["map"]["walls"]) == 18
    for path in found["paths"]:
        assert len(path["points"]) == 21
        assert np.abs(path["points"][0]).max() < 0.2  # the ant starts at the origin
        assert 0 < path["goal"][0] < 2 and 8 < path["goal"][1] < 10
    (entry,) = read_runs([run])
    drawn = behaviour.maze_paths(entry)
    assert drawn and len(drawn["walls"]) == 18 and len(drawn["paths"]) == inspect.PATHS


def shortened(task, **options):
    from edp.envs.make import make_env

    return make_env(task.env, **options, max_episode_steps=20)


def test_point_maze_is_a_maze():
    pytest.importorskip("gymnasium_robotics")
    gymnasium.register_envs(pytest.importorskip("gymnasium_robotics"))
    env = gymnasium.make("PointMaze_UMaze-v3")
    obs, _ = env.reset(seed=0)
    ground = inspect.maze_map(env)
    assert ground and ground["cell"] == 1.0
    assert inspect.position_of(env, obs) == pytest.approx(obs["achieved_goal"])
    assert inspect.goal_of(env) == pytest.approx(obs["desired_goal"])
    walls = np.array(ground["walls"])
    assert np.abs(walls - inspect.position_of(env, obs)).max(axis=1).min() >= 0.5  # it is not inside a wall
    env.close()


def test_two_actions_are_a_plane(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{i // 20},{rng.normal():.3f},{rng.uniform(10, 20):.3f},{rng.uniform(0, 5):.3f},1" for i in range(200)]
    (tmp_path / "log.csv").write_text(
        "\n".join(["episode,observation_0,action_0,action_1,reward", *rows]) + "\n", encoding="utf-8"
    )
    command = ["train", str(tmp_path / "log.csv"), "--out", str(tmp_path / "run"), *SMALL, "--algo", "bc"]
    assert main([*command, "--calls", "3", "--eas", "1"]) == 0
    text = report(tmp_path / "run", out=tmp_path / "report.html")
    found = seen(tmp_path / "run")
    for name in ("data", "policy"):
        points = np.array(found["plane"][name])
        assert (points >= [10, 0]).all() and (points <= [20, 5]).all()
    assert "episode" not in found and '"plane":{"data":[[' in text and '"names":["action_0","action_1"]' in text


def test_a_state_and_an_action_are_a_plane(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{rng.uniform(50, 60):.3f},{rng.uniform(10, 20):.3f},1,1" for _ in range(200)]
    (tmp_path / "log.csv").write_text(
        "\n".join(["observation_0,action_0,reward,terminal", *rows]) + "\n", encoding="utf-8"
    )
    command = ["train", str(tmp_path / "log.csv"), "--out", str(tmp_path / "run"), *SMALL, "--algo", "bc"]
    assert main([*command, "--calls", "3", "--eas", "1", "--normalise", "standard"]) == 0
    text = report(tmp_path / "run", out=tmp_path / "report.html")
    data, policy = (np.array(seen(tmp_path / "run")["plane"][name]) for name in ("data", "policy"))
    assert (data[:, 0] == policy[:, 0]).all()
    assert (data >= [49.99, 10]).all() and (data <= [60.01, 20]).all()
    known = {tuple(row.split(",")[:2]) for row in rows}
    assert all(min(np.hypot(s - float(a), t - float(b)) for a, b in known) < 0.01 for s, t in data[:9])
    assert '"names":["observation_0","action_0"]' in text


def test_an_environment_of_one_s_own_is_made_on_the_user_s_word_alone(hopper_file, tmp_path, capsys, fails):
    words = ("--algo", "bc", "--eas", "1", "--calls", "3", "--env", "Hopper-v5", "--validation", "0")
    assert main(["train", str(hopper_file), "--out", str(tmp_path / "run"), *SMALL, *words]) == 0
    config = json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))
    config["own_task"]["env"] = "nobody_has_this:Env-v0"
    (tmp_path / "run" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    report(tmp_path / "run", out=tmp_path / "report.html")
    assert "was trained with --env nobody_has_this:Env-v0" in capsys.readouterr().err
    assert "episode" not in seen(tmp_path / "run")  # the policy is inspected again once an episode can be played
    assert (
        main(["report", str(tmp_path / "run"), "--look", "--env", "Hopper-v5", "--out", str(tmp_path / "b.html")]) == 0
    )
    assert seen(tmp_path / "run")["episode"]["length"] > 3
    assert "--env is for --look" in fails("report", tmp_path / "run", "--env", "Hopper-v5")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        '{"step": 4}',
        '{"step": 4, "episode": 3, "plane": [], "map": 1, "paths": {}, "actions": []}',
        '{"step": 4, "actions": {"data": {"histogram": [[1, "x"]]}, "policy": [null]}}',
        '{"step": 4, "episode": {"at": [1], "q": [NaN], "q_low": [1], "q_high": [1e400], "length": 1, "return": NaN, '
        '"choices": [{"at": 1, "q": [null, NaN], "chosen": "<script>"}]}, "map": null, "paths": [{"points": [[1, NaN], '
        '[1, 2]], "goal": ["<img>", 2]}]}',
        '{"step": 4, "map": {"walls": [[0, 0]], "cell": NaN}, "paths": [{"points": [[0, 0]], "goal": null}]}',
        '{"step": 4, "map": null, "paths": [{"points": [[0, 1.7976931e308]], "goal": null}], '
        '"episode": {"at": [1], "q": '
        '[1.7976931e308], "q_low": [1], "q_high": [1], "length": 1, "return": 1, "choices": []}}',
        '{"step": "<script>alert(1)</script>", "plane": {"data": [[1, 2], [Infinity, 0]], "policy": [[1, 2, 3]]}}',
    ],
)
def test_what_was_seen_may_be_damaged(trained, tmp_path, content):
    copy = tmp_path / "copy"
    shutil.copytree(trained, copy)
    (copy / "look.json").write_text(content, encoding="utf-8")
    text = page.build_page(read_runs([copy]), "title")
    assert "<script>alert" not in text and "NaN" not in text.split('id="data"')[1].split("</script>")[0]
