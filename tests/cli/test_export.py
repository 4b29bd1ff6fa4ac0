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


def test_unknown_formats(run_folder, tmp_path, fails):
    assert "unknown format 'tflite': choose from: onnx" in fails(
        "export", run_folder, tmp_path / "a.onnx", "--format", "tflite"
    )
    assert "give the format with --format" in fails("export", run_folder, tmp_path / "policy")
    assert not list(tmp_path.iterdir())
