"""edp compare: scores of methods, and the probability that one is better."""

import json
import shutil

from edp.cli import main


def test_compare_shows_methods_and_their_chances(run_folder, capsys, tmp_path, fails):
    other = tmp_path / "other"
    shutil.copytree(run_folder, other)
    config = json.loads((other / "config.json").read_text(encoding="utf-8"))
    config["algorithm"]["name"] = "iql"
    (other / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert main(["compare", str(run_folder), str(other)]) == 0
    shown = capsys.readouterr().out
    for text in ("td3bc + diffusion", "iql + diffusion", "50% [", "caution: 2 seeds: too few", "caution: 2 episodes"):
        assert text in shown
    (other / "evaluations.jsonl").unlink()
    assert "no evaluations in it yet" in fails("compare", run_folder, other)
