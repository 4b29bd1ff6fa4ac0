"""edp eval: scores, options, videos, and damaged runs."""

import json
import os

import imageio.v3
import numpy as np
import pytest

from edp.acting import video
from edp.cli import main
from edp.errors import UserError


def test_eval_gives_the_score_of_the_last_evaluation_again(run_folder, capsys):
    before = json.loads((run_folder / "evaluations.jsonl").read_text(encoding="utf-8").splitlines()[1])
    assert main(["eval", str(run_folder)]) == 0
    assert "hopper-medium-v2" in capsys.readouterr().out
    after = json.loads((run_folder / "evaluations.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    np.testing.assert_allclose(after["returns"], before["returns"], rtol=1e-4)
    assert after["options"] == before["options"]


def test_eval_takes_options_over_those_of_the_run(run_folder):
    assert (
        main(
            ["eval", str(run_folder), "--episodes", "1", "--act-with", "online", "--act-sampler", "ddim", "--eas", "2"]
        )
        == 0
    )
    after = json.loads((run_folder / "evaluations.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    assert np.shape(after["returns"]) == (2, 1)
    assert (after["options"]["eas"], after["options"]["act_sampler"]) == (2, "ddim")


def can_render():
    try:
        video.render_platform("edp/hopper-d4rl-v2")
    except UserError:
        return False
    return True


def test_eval_films_an_episode_or_says_why_not(run_folder, tmp_path, capsys, monkeypatch, fails):
    """Which of the two depends on the machine's OpenGL; both are checked where there is one."""
    assert "a video is .gif or .mp4" in fails("eval", run_folder, "--video", tmp_path / "a.avi")
    film = tmp_path / "a.gif"
    film.write_text("mine", encoding="utf-8")
    assert "a.gif: already exists" in fails("eval", run_folder, "--video", film)
    film.unlink()
    monkeypatch.setenv("MUJOCO_GL", os.environ.get("MUJOCO_GL", ""))  # restores the variable afterwards
    words = ["eval", str(run_folder), "--video", str(film), "--episodes", "2"]
    if not can_render():
        assert "install EGL or OSMesa" in fails(*words)
        assert not film.exists()
        return
    assert main(words) == 0
    evaluation = json.loads((run_folder / "evaluations.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    assert f"{film}: {evaluation['lengths'][0][0]} steps, normalised score {evaluation['scores'][0][0]:.1f}" in (
        capsys.readouterr().out.replace("\n", "")
    )
    frames = imageio.v3.imread(film)
    assert len(frames) == -(-(evaluation["lengths"][0][0] + 1) // 3)  # every third of 125 pictures a second
    assert len(np.unique(frames[0])) > 10


def test_without_opengl_the_reason_is_given(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "none-such")
    with pytest.raises(UserError, match=r"cannot render edp/hopper-d4rl-v2 .tried none-such.: install EGL or OSMesa"):
        video.render_platform("edp/hopper-d4rl-v2")


def test_damaged_runs_are_refused(fails, tmp_path):
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    assert "damaged" in fails("eval", tmp_path)
    (tmp_path / "config.json").write_text('{"schema": 99}', encoding="utf-8")
    assert "schema 99" in fails("eval", tmp_path)
    (tmp_path / "config.json").write_text('{"schema": 2}', encoding="utf-8")
    assert "damaged (no 'training')" in fails("eval", tmp_path)
    (tmp_path / "config.json").write_text('{"schema": 3}', encoding="utf-8")
    assert "damaged (no 'task')" in fails("eval", tmp_path)
    (tmp_path / "config.json").write_text('{"schema": 4}', encoding="utf-8")
    assert "not a config of this version" in fails("eval", tmp_path)
