"""``edp export``: what it prints."""

from edp.cli import main


def test_what_it_prints(run_folder, tmp_path, capsys):
    out = tmp_path / "policy.onnx"
    acting = ["--eas", "3", "--eas-temperature", "1", "--act-calls", "4", "--act-sampler", "dpm++"]
    assert main(["export", str(run_folder), str(out), *acting]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"written     {out} (")
    assert lines[1] == "policy      diffusion of r, seed 7, step 30; dpm++, 4 calls; EAS of 3, temperature 1"
    assert lines[2] == "inputs      observation (batch, 11), noise (batch, 3, 1, 3), gumbel (batch, 3)"
    assert lines[3] == "output      action (batch, 3)"
    assert lines[4] == "compared    with JAX in 256 states of the data"
    assert lines[5].startswith("            greatest difference: ")


def test_the_control_loop(run_folder, tmp_path, capsys, fails):
    out = tmp_path / "policy.onnx"
    words = ["export", run_folder, out, "--eas", "1", "--act-calls", "3", "--act-sampler", "dpm++"]
    loop = ["--max-change", "action_0=0.5,action_2=0.25", "--deadline-ms", "20", "--fallback", "-1,0,0.5"]
    assert main([*map(str, words), *loop, "--outside", "hold"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("control ")]
    assert line.split(maxsplit=1)[1] == (
        "outside of the training data: hold; changes of at most 0.5, any, 0.25; after 20 ms: -1, 0, 0.5"
    )
    out.unlink()
    (tmp_path / "policy.json").unlink()
    assert "--max-change must be above 0, not -1" in fails(*words, "--max-change", "-1")
    assert "--max-change must be numbers, or a mapping" in fails(*words, "--max-change", "slow")
    assert "'0.5,a' is neither numbers" in fails(*words, "--max-change", "0.5,a")
    assert "unknown action in --max-change 'valve'" in fails(*words, "--max-change", "valve=1")
    assert "--deadline-ms must be" in fails(*words, "--deadline-ms", "0")
    assert "give that, too" in fails(*words, "--fallback", "hold")
    assert "unknown choice of --outside 'wait'" in fails(*words, "--outside", "wait")
    assert not list(tmp_path.iterdir())


def test_unknown_formats(run_folder, tmp_path, fails):
    assert "unknown format 'tflite': choose from: onnx" in fails(
        "export", run_folder, tmp_path / "a.onnx", "--format", "tflite"
    )
    assert "give the format with --format" in fails("export", run_folder, tmp_path / "policy")
    assert not list(tmp_path.iterdir())
