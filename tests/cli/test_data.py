"""edp data: tasks, look-alikes and new files."""

import numpy as np
from small import TINY

from edp.cli import main
from edp.data.synthesis.behaviours import BUILT_IN


def actor_for(folder, obs, act):
    """A policy file of the given sizes."""
    shapes = {"w0": (obs, 4), "w1": (4, 4), "w_mu": (4, act), "w_ls": (4, act)}
    weights = {name: np.zeros(shape) for name, shape in shapes.items()}
    np.savez(folder / "other.npz", **weights, **{name.replace("w", "b"): np.zeros(s[1]) for name, s in shapes.items()})
    return folder / "other.npz"


def test_wrong_files_leave_nothing_behind(capsys, tmp_path, monkeypatch, fails):
    monkeypatch.chdir(tmp_path)
    assert "none.hdf5: no such file" in fails("train", "hopper-medium-v2", "--data", "none.hdf5")
    assert "not a run directory" in fails("eval", tmp_path)
    assert "needs --env ID" in fails("data", "make", "new.hdf5")
    actor = BUILT_IN / "hopper-medium.npz"
    make = ["data", "make", "new.hdf5", "--policy", actor]
    assert "environment 'nomod:Foo-v0'" in fails(*make, "--env", "nomod:Foo-v0")
    assert "actions are in [-2, 2]" in fails(*make[:-1], actor_for(tmp_path, 3, 1), "--env", "Pendulum-v1")
    (tmp_path / "other.npz").unlink()
    make += ["--env", "edp/hopper-d4rl-v2"]
    assert "--seed must be at least 0" in fails(*make, "--seed", "-1")
    assert "too few" in fails(*make, "--policy", f"{actor}:0.00001", "--transitions", "50")
    assert "a share must be a positive number" in fails(*make, "--policy", f"{actor}:-1")
    assert "a new file's name ends in .hdf5" in fails("data", "make", tmp_path, *make[3:])
    assert "is a directory" in fails("data", "make", "hopper-medium-v2", "--out", tmp_path, "--policy", actor)
    assert "no such policy file" in fails("data", "make", "new.hdf5", "--env", "Hopper-v4", "--policy", "none.npz")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "new.hdf5").write_text("mine", encoding="utf-8")
    assert "new.hdf5: already exists" in fails(*make)
    assert (tmp_path / "new.hdf5").read_text(encoding="utf-8") == "mine"


def test_data_list_shows_every_task(capsys):
    assert main(["data", "list"]) == 0
    out = capsys.readouterr().out
    assert "halfcheetah-medium-replay-v2" in out
    assert "local/hopper-medium-expert" in out


def test_data_list_tells_all_about_one_task(capsys):
    assert main(["data", "list", "kitchen-complete-v0"]) == 0
    shown = capsys.readouterr().out
    for text in (
        "mini_kitchen_microwave_kettle_light_slider-v0.hdf5",
        "--loss-weight 0.005",
        "iql + diffusion",
        "75.5",
    ):
        assert text in shown.replace("\n              ", "")


def test_look_alikes_are_made_and_marked_in_everything_that_is_shown(capsys, tmp_path, monkeypatch, fails):
    monkeypatch.setenv("EDP_CACHE", str(tmp_path))
    make = ["data", "make", "hopper-medium-v2", "--transitions", "100", "--processes", "1"]
    said = fails(*make)
    assert "is made from one or more --policy FILE" in said
    assert said.endswith("; built-in ones: --policy hopper-expert or --policy hopper-medium")
    assert "built-in" not in fails("data", "make", "walker2d-medium-v2")
    make += ["--policy", "hopper-medium", "--policy", str(BUILT_IN / "hopper-expert.npz:3")]
    assert "--env does not go with it" in fails(*make, "--env", "edp/hopper-d4rl-v2")
    assert "--noise must be at least 0" in fails(*make, "--noise", "-1")
    assert "did you mean 'hopper-medium-v2'" in fails("data", "make", "hopper-medum-v2")
    assert main([*make, "--noise", "0.1"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "regenerated" / "hopper-medium-v2.hdf5")
    assert "hopper-medium-v2.hdf5: already exists" in fails(*make)
    copy = tmp_path / "policy.npz"
    copy.write_bytes((BUILT_IN / "hopper-medium.npz").read_bytes())
    onto = ["data", "make", "hopper-medium-v2", "--policy", copy, "--out", copy, "--overwrite"]
    assert "policy.npz: is being read" in fails(*onto)
    assert main(["data", "list"]) == 0
    assert "look-alike" in capsys.readouterr().out
    assert main(["train", "hopper-medium-v2", "--out", str(tmp_path / "run"), *TINY]) == 0
    shown = capsys.readouterr().out
    assert "regenerated: a look-alike of hopper-medium-v2, not D4RL's file" in shown
    assert "hopper-medium-v2 (regenerated data)" in shown
    assert "the paper" not in shown  # the paper's scores are for other data
    assert main(["eval", str(tmp_path / "run")]) == 0
    assert "hopper-medium-v2 (regenerated data)" in capsys.readouterr().out
