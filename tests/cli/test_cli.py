"""The command line as a user meets it: what it prints, what it leaves behind, and how it fails."""

import json
import os
import resource
import shutil
import subprocess
import sys

import imageio.v3
import numpy as np
import pytest

from edp.acting import video
from edp.cli import main
from edp.cli.ablate import ACTING
from edp.data.synthesis.behaviours import BUILT_IN
from edp.errors import UserError

LENGTH = ["--steps", "30", "--epoch-steps", "10", "--eval-every", "20", "--episodes", "2"]
TINY = [*LENGTH, "--policy-target-after", "0", "--calls", "3", "--eas", "2"]


@pytest.fixture(scope="module")
def run_folder(hopper_file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "r"
    code = main(
        [
            "train",
            "hopper-medium-v2",
            "--data",
            str(hopper_file),
            "--out",
            str(folder),
            "--seeds",
            "2",
            "--seed",
            "7",
            *TINY,
        ]
    )
    assert code == 0
    return folder


def actor_for(folder, obs, act):
    """A policy file of the given sizes."""
    shapes = {"w0": (obs, 4), "w1": (4, 4), "w_mu": (4, act), "w_ls": (4, act)}
    weights = {name: np.zeros(shape) for name, shape in shapes.items()}
    np.savez(folder / "other.npz", **weights, **{name.replace("w", "b"): np.zeros(s[1]) for name, s in shapes.items()})
    return folder / "other.npz"


def test_a_run_directory_holds_config_metrics_evaluations_and_checkpoint(run_folder, hopper_file):
    config = json.loads((run_folder / "config.json").read_text())
    assert config["task"] == "hopper-medium-v2"
    assert config["algorithm"]["name"] == "td3bc"
    assert config["policy"]["calls"] == 3
    assert config["file"] == str(hopper_file)
    assert (config["origins"]["calls"], config["origins"]["lr"]) == ("command line", "domain locomotion")
    metrics = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in metrics] == [10, 20, 30]
    assert all(len(values) == 2 for row in metrics for values in row["metrics"].values())
    evaluations = [json.loads(line) for line in (run_folder / "evaluations.jsonl").read_text().splitlines()]
    assert [row["step"] for row in evaluations][:2] == [20, 30]
    assert np.shape(evaluations[0]["returns"]) == (2, 2)
    assert evaluations[0]["seeds"] == [7, 8]


def test_eval_gives_the_score_of_the_last_evaluation_again(run_folder, capsys):
    before = json.loads((run_folder / "evaluations.jsonl").read_text().splitlines()[1])
    assert main(["eval", str(run_folder)]) == 0
    assert "hopper-medium-v2" in capsys.readouterr().out
    after = json.loads((run_folder / "evaluations.jsonl").read_text().splitlines()[-1])
    np.testing.assert_allclose(after["returns"], before["returns"], rtol=1e-4)
    assert after["options"] == before["options"]


def test_ablate_writes_scores_and_a_picture_for_every_value(run_folder, fails, monkeypatch):
    monkeypatch.setattr(
        "edp.cli.ablate.ACTING",
        {name: entry._replace(values=entry.values[:2]) for name, entry in ACTING.items()},
    )
    assert "did you mean 'noise'" in fails("ablate", "nois", run_folder)
    assert "varies that option itself" in fails("ablate", "noise", run_folder, "--initial-noise", "0.5")
    trained = [row for row in evaluations(run_folder) if row["kind"] == "training"]
    for name, entry in ACTING.items():
        assert main(["ablate", name, str(run_folder), "--episodes", "1"]) == 0
        result = json.loads((run_folder / "ablations" / f"{name}.json").read_text())
        assert result["values"] == list(entry.values[:2])
        assert np.array(result["scores"]).shape == (2, 2, 1)
        assert (run_folder / "ablations" / f"{name}.png").stat().st_size > 5000
    assert evaluations(run_folder)[-1]["options"]["initial_noise"] == 0.2
    assert [row for row in evaluations(run_folder) if row["kind"] == "training"] == trained


def test_ablations_that_train_compare_their_variants(hopper_file, tmp_path, capsys, fails):
    words = ["ablate", "network", "hopper-medium-v2", "--data", str(hopper_file), "--out", str(tmp_path / "a"), *LENGTH]
    assert main([*words, "--seeds", "2"]) == 0
    result = json.loads((tmp_path / "a" / "network.json").read_text())
    assert result["values"] == ["feed-forward", "twice as wide"]
    assert np.array(result["scores"]).shape == (2, 2, 2)
    assert len(result["steps_per_second"]) == 2
    assert (tmp_path / "a" / "network.png").stat().st_size > 5000
    before = (tmp_path / "a" / "feed-forward" / "metrics.jsonl").stat().st_mtime_ns
    assert main([*words, "--seeds", "2"]) == 0  # nothing is trained again
    assert (tmp_path / "a" / "feed-forward" / "metrics.jsonl").stat().st_mtime_ns == before
    assert "another command" in fails(*words, "--seeds", "3")
    assert "sets --policy itself" in fails(*words, "--policy", "gaussian")


def evaluations(folder):
    return [json.loads(line) for line in (folder / "evaluations.jsonl").read_text().splitlines()]


def test_compare_shows_methods_and_their_chances(run_folder, capsys, tmp_path, fails):
    other = tmp_path / "other"
    shutil.copytree(run_folder, other)
    config = json.loads((other / "config.json").read_text())
    config["algorithm"]["name"] = "iql"
    (other / "config.json").write_text(json.dumps(config))
    assert main(["compare", str(run_folder), str(other)]) == 0
    shown = capsys.readouterr().out
    for text in ("td3bc + diffusion", "iql + diffusion", "50% [", "caution: 2 seeds: too few", "caution: 2 episodes"):
        assert text in shown
    (other / "evaluations.jsonl").unlink()
    assert "no evaluations in it yet" in fails("compare", run_folder, other)


def can_render():
    try:
        video.platform("edp/hopper-d4rl-v2")
    except UserError:
        return False
    return True


def test_eval_films_an_episode_or_says_why_not(run_folder, tmp_path, capsys, monkeypatch, fails):
    """Which of the two depends on the machine's OpenGL; both are checked where there is one."""
    assert "a video is .gif or .mp4" in fails("eval", run_folder, "--video", tmp_path / "a.avi")
    film = tmp_path / "a.gif"
    monkeypatch.setenv("MUJOCO_GL", os.environ.get("MUJOCO_GL", ""))  # what is set on the way is undone
    words = ["eval", str(run_folder), "--video", str(film), "--episodes", "2"]
    if not can_render():
        assert "install EGL or OSMesa" in fails(*words)
        assert not film.exists()
        return
    assert main(words) == 0
    evaluation = json.loads((run_folder / "evaluations.jsonl").read_text().splitlines()[-1])
    assert f"{film}: {evaluation['lengths'][0][0]} steps, normalised score {evaluation['scores'][0][0]:.1f}" in (
        capsys.readouterr().out.replace("\n", "")
    )
    frames = imageio.v3.imread(film)
    assert len(frames) == -(-(evaluation["lengths"][0][0] + 1) // 3)  # every third of 125 pictures a second
    assert len(np.unique(frames[0])) > 10


def test_without_opengl_the_reason_is_given(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "none-such")
    with pytest.raises(UserError, match=r"cannot render edp/hopper-d4rl-v2 .tried none-such.: install EGL or OSMesa"):
        video.platform("edp/hopper-d4rl-v2")


def test_eval_takes_options_over_those_of_the_run(run_folder):
    assert main(["eval", str(run_folder), "--episodes", "1", "--act-with", "online", "--act-sampler", "ddim"]) == 0
    after = json.loads((run_folder / "evaluations.jsonl").read_text().splitlines()[-1])
    assert np.shape(after["returns"]) == (2, 1)
    assert (after["options"]["eas"], after["options"]["act_sampler"]) == (2, "ddim")


def test_quiet_prints_the_result_only(hopper_file, tmp_path, capsys):
    words = [
        "train",
        "hopper-medium-v2",
        "--data",
        hopper_file,
        "--out",
        tmp_path / "q",
        "--quiet",
        "--policy",
        "deterministic",
    ]
    tiny = [
        word for pair in zip(TINY[::2], TINY[1::2], strict=True) if pair[0] not in ("--calls", "--eas") for word in pair
    ]
    assert main([str(word) for word in words] + tiny) == 0
    out = capsys.readouterr().out
    assert "td3bc + deterministic" in out
    assert "compiled" not in out


def test_wrong_names_get_the_nearest_one(capsys, hopper_file, fails):
    assert "did you mean 'train'" in fails("trian")
    assert "did you mean 'hopper-medium-v2'" in fails("train", "hopper-medum-v2")
    assert "did you mean 'td3bc'" in fails("train", "hopper-medium-v2", "--algo", "td3bs")
    assert "did you mean 'diffusion'" in fails("train", "hopper-medium-v2", "--policy", "difusion")
    assert "did you mean '--steps'" in fails("train", "hopper-medium-v2", "--stps", "3")
    assert "did you mean 'cosine'" in fails("train", "hopper-medium-v2", "--data", hopper_file, "--schedule", "cosin")
    assert "did you mean 'data make'" in fails("data", "mak")
    assert "did you mean 'average'" in fails("train", "hopper-medium-v2", "--data", hopper_file, "--act-with", "averge")


def test_wrong_values_say_what_is_wrong(capsys, hopper_file, tmp_path, fails):
    assert "--steps must be at least 1, not 0" in fails("train", "hopper-medium-v2", "--steps", "0")
    assert "--discount must be from 0.0 to 1.0, not 1.5" in fails("train", "hopper-medium-v2", "--discount", "1.5")
    assert "--lr must be at least 0.0, not nan" in fails("train", "hopper-medium-v2", "--lr", "nan")
    assert "invalid int value: 'many'" in fails("train", "hopper-medium-v2", "--steps", "many")
    assert "required: TASK" in fails("train")
    assert "at most one call a step" in fails(
        "train", "hopper-medium-v2", "--data", hopper_file, "--sampler", "ddpm", "--diffusion-steps", "5"
    )
    words = ["train", "hopper-medium-v2", "--data", hopper_file, "--out", tmp_path / "r"]
    assert "at most one call a step" in fails(*words, "--diffusion-steps", "5", "--act-sampler", "ddim")
    assert "diffusion policies only" in fails(*words, "--policy", "deterministic", "--act-sampler", "ddim")
    assert "--seed must be from 0" in fails(*words, "--seed", "4294967296")
    assert not (tmp_path / "r").exists()


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


def test_a_data_set_that_does_not_fit_the_task_is_refused(fails, hopper_file, tmp_path):
    line = fails("train", "walker2d-medium-v2", "--data", hopper_file, "--out", tmp_path / "r")
    assert "11 observations and 3 actions" in line
    assert "17 and 6" in line
    assert not (tmp_path / "r").exists()


def test_an_existing_run_is_not_overwritten(run_folder, fails, hopper_file):
    before = (run_folder / "config.json").read_bytes()
    assert "already there" in fails("train", "hopper-medium-v2", "--data", hopper_file, "--out", run_folder)
    assert (run_folder / "config.json").read_bytes() == before


def test_damaged_runs_are_refused(fails, tmp_path):
    (tmp_path / "config.json").write_text("{")
    assert "damaged" in fails("eval", tmp_path)
    (tmp_path / "config.json").write_text('{"schema": 99}')
    assert "schema 99" in fails("eval", tmp_path)
    (tmp_path / "config.json").write_text('{"schema": 2}')
    assert "damaged (no 'training')" in fails("eval", tmp_path)
    (tmp_path / "config.json").write_text('{"schema": 3}')
    assert "not a config of this version" in fails("eval", tmp_path)


def test_help_and_import_are_quick():
    for words in (["-c", "import edp"], ["-m", "edp", "--help"]):
        program = [sys.executable, "-X", "importtime", *words]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(program, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1
        assert done.returncode == 0
        loaded = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
        assert not loaded & {"jax", "numpy", "mujoco", "gymnasium", "h5py", "rich"}


@pytest.mark.parametrize("command", [["train"], ["eval"], ["data"], ["data", "make"], ["data", "list"]])
def test_every_command_has_help(command, capsys):
    try:
        assert main([*command, "--help"]) == 0
    except SystemExit as stop:
        assert stop.code == 0
    assert "usage: edp " + " ".join(command) in capsys.readouterr().out


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
    assert "is made from one or more --policy FILE" in fails(*make)
    make += ["--policy", str(BUILT_IN / "hopper-medium.npz:1"), "--policy", str(BUILT_IN / "hopper-expert.npz:3")]
    assert "--env does not go with it" in fails(*make, "--env", "edp/hopper-d4rl-v2")
    assert "--noise must be at least 0" in fails(*make, "--noise", "-1")
    assert "did you mean 'hopper-medium-v2'" in fails("data", "make", "hopper-medum-v2")
    assert main([*make, "--noise", "0.1"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "regenerated" / "hopper-medium-v2.hdf5")
    assert main(["data", "list"]) == 0
    assert "look-alike" in capsys.readouterr().out
    assert main(["train", "hopper-medium-v2", "--out", str(tmp_path / "run"), *TINY]) == 0
    shown = capsys.readouterr().out
    assert "regenerated: a look-alike of hopper-medium-v2, not D4RL's file" in shown
    assert "hopper-medium-v2 (regenerated data)" in shown
    assert "the paper" not in shown  # whose numbers are for other data
    assert main(["eval", str(tmp_path / "run")]) == 0
    assert "hopper-medium-v2 (regenerated data)" in capsys.readouterr().out


def test_the_paper_s_scores_stand_beside_runs_like_its_own(hopper_file, capsys, tmp_path):
    data = tmp_path / "hopper_medium-v2.hdf5"  # the name of D4RL's file
    data.write_bytes(hopper_file.read_bytes())
    dql = ["--preset", "dql", "--diffusion-steps", "3", "--eas", "1"]
    for number, (options, paper) in enumerate((([], "81.9; best 98.6"), (dql, "best 95.3"))):
        words = [
            "train",
            "hopper-medium-v2",
            "--data",
            str(data),
            "--out",
            str(tmp_path / str(number)),
            *TINY,
            *options,
        ]
        assert main(words) == 0
        (line,) = [line for line in capsys.readouterr().out.splitlines() if "the paper" in line]
        assert f"│ {paper} " in line


def test_print_config_lists_values_and_origins_and_does_nothing_else(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["train", "hopper-medium-v2", "--algo", "iql", "--policy", "gaussian", "--tau", "0.01", "--print-config"]
    assert main(words) == 0
    rows = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    origins = {row[0]: (row[1], row[2].strip()) for row in rows if len(row) == 3}
    assert origins["--lr"] == ("0.0003", "domain locomotion")
    assert origins["--tau"] == ("0.01", "command line")
    assert origins["--bc-weight"] == ("0.0", "iql with gaussian")
    assert origins["--expectile"] == ("0.7", "default")
    assert origins["--steps"] == ("2000000", "domain locomotion")
    assert list(tmp_path.iterdir()) == []


def test_pairs_that_make_no_sense_are_refused_with_the_reason(fails):
    for words, reason in (
        (["--algo", "cql", "--policy", "deterministic", "--entropy", "0.1"], "a deterministic policy has none"),
        (["--algo", "dt", "--policy", "gaussian"], "use --policy transformer"),
        (["--policy", "transformer"], "only --algo dt trains"),
        (["--policy", "deterministic", "--max-q-backup", "10"], "use --policy diffusion or gaussian"),
        (["--preset", "dql", "--policy", "gaussian"], "preset dql sets --sampler"),
        (["--preset", "edp-without-ap", "--algo", "iql"], "does not learn from the policy's actions"),
        (["--likelihood", "elbo"], "does not learn from the policy's likelihoods"),
        (["--algo", "bc", "--eas", "5"], "this algorithm has none: use --eas 1"),
        (["--policy", "deterministic", "--eas", "5"], "this policy has one: use --eas 1"),
        (["--algo", "dt", "--rewards", "min-max"], "use --rewards raw"),
        (["--algo", "dt", "--heads", "3"], "--heads must divide --width"),
        (["--algo", "cql", "--policy", "gaussian", "--no-squash"], "grows without bound"),
        (["--schedule", "cosin", "--print-config"], "did you mean 'cosine'"),
    ):
        assert reason in fails("train", "local/hopper-medium-expert", *words)


@pytest.mark.parametrize(
    "words", [["--algo", "dt", "--context", "3", "--width", "8"], ["--algo", "awr", "--calls", "3"]]
)
def test_data_in_other_forms_trains_too(words, hopper_file, tmp_path):
    """Decision Transformer learns from windows of episodes and AWR from returns: from file to evaluation and back."""
    tiny = ["--steps", "10", "--epoch-steps", "10", "--episodes", "2", "--quiet", "--out", str(tmp_path / "r")]
    assert main(["train", "hopper-medium-v2", "--data", str(hopper_file), *words, *tiny]) == 0
    assert main(["eval", str(tmp_path / "r"), "--episodes", "1"]) == 0
