"""The paper's efficiency figure as a command."""

import json

import pytest

from edp.bench import variants
from edp.cli import main


def test_bench_measures_and_draws(tmp_path, monkeypatch, capsys, fails):
    monkeypatch.setattr(variants, "BLOCK_FLOPS", 1e9)
    out, picture = tmp_path / "b.json", tmp_path / "b.png"
    words = ["bench", "--only", "feed-forward", "--rounds", "2", "--json", str(out), "--picture", str(picture)]
    assert main(words) == 0
    assert "feed-forward" in capsys.readouterr().out
    result = json.loads(out.read_text(encoding="utf-8"))
    assert [row["what"] for row in result["variants"]] == ["training", "acting"]
    for row in result["variants"]:
        assert 0 < row["spread"][0] <= row["steps_per_second"] <= row["spread"][1]
        assert row["share_of_gemm"] > 0 and row["share_of_large_gemm"] > 0
        assert len(row["rounds"]) == 2 and row["times_first"] == 1
    assert result["gemm_gflops"] > 0 and result["large_gemm_gflops"] > 0
    assert result["about"]["processor"] and result["about"]["cores"]
    assert picture.stat().st_size > 5000
    monkeypatch.setattr(variants, "measure", lambda *_: pytest.fail("it measures before the refusal"))
    assert "b.json: already exists" in fails(*words)
    out.unlink()
    assert "b.png: already exists; choose another name, or replace it with --overwrite" in fails(*words)


@pytest.mark.parametrize("words", [["--only", "edpp"], ["--rounds", "many"], ["--rounds", "0"]])
def test_wrong_words(words, fails):
    fails("bench", *words)
