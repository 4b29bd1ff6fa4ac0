"""Damaged checkpoints are reported, and the one before is used."""

import json
import os
import random
import shutil
import subprocess

import numpy as np
import pytest

import edp
from edp.cli import main
from edp.runs import load
from edp.runs.checkpoints import arrays_digest, leaves_by_name
from edp.runs.directory import Run
from support.small_run import EPOCH, STEPS, assert_same, command, digest

DAMAGES = int(os.environ.get("EDP_DAMAGES", "3"))


class TestDamage:
    """Of checkpoints: reported, and the one before is used."""

    def damage(self, folder, how, rng):
        """Damage in the last checkpoint, one file at a time."""
        last = max((folder / "checkpoints").iterdir(), key=lambda entry: int(entry.name))
        file = rng.choice(sorted(path for path in last.rglob("*") if path.is_file() and path.stat().st_size > 8))
        content = bytearray(file.read_bytes())
        if how == "truncated":
            file.write_bytes(content[: rng.randrange(len(content))])
        elif how == "missing":
            file.unlink()
        elif how == "folder":
            shutil.rmtree(last / "state")
        else:
            for _ in range(8):
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            file.write_bytes(content)

    @pytest.mark.parametrize("seed", range(DAMAGES))
    @pytest.mark.parametrize("how", ["truncated", "missing", "flipped", "folder"])
    def test_the_checkpoint_before_is_used(self, how, seed, whole, copy):
        good = {step: digest(whole, step) for step in (STEPS - EPOCH, STEPS)}
        self.damage(copy, how, random.Random(seed))
        _, found = load.load_checkpoint(Run.open(copy))
        # What is damaged may not matter (an index that is there twice), but it is never used if it does.
        assert (
            arrays_digest({name: np.asarray(leaf) for name, leaf in leaves_by_name(found.tree).items()})
            == good[found.step]
        )
        if how in ("folder",):
            assert found.step == STEPS - EPOCH

    def test_resuming_says_so_and_trains_it_again(self, whole, copy):
        shutil.rmtree(copy / "checkpoints" / str(STEPS) / "state")
        (copy / "status.json").unlink()  # as if it had been killed
        done = subprocess.run(command("train", "--resume", copy), capture_output=True, text=True)
        assert f"{STEPS}: damaged" in done.stderr
        assert "the one before it is used" in done.stderr
        assert_same(copy, whole)

    def test_all_of_them_damaged(self, copy, fails):
        for state in (copy / "checkpoints").glob("*/state"):
            shutil.rmtree(state)
        assert "damaged" in fails("eval", copy)

    def test_a_config_that_does_not_fit_its_checkpoints_removes_nothing(self, copy, fails):
        config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
        config["policy"]["hidden"] = [17]
        (copy / "config.json").write_text(json.dumps(config), encoding="utf-8")
        before = sorted((copy / "checkpoints").iterdir()), (copy / "metrics.jsonl").read_bytes()
        said = fails("train", "--resume", copy, "--steps", STEPS + 10)
        assert "config.json: changed or damaged after the checkpoint" in said
        assert "(policy.hidden[0] is 17, and was 16)" in said
        assert before == (sorted((copy / "checkpoints").iterdir()), (copy / "metrics.jsonl").read_bytes())

    def test_is_told_when_evaluating(self, copy, capsys):
        shutil.rmtree(copy / "checkpoints" / str(STEPS) / "state")
        assert main(["eval", str(copy), "--episodes", "1"]) == 0
        assert f"{STEPS}: damaged" in capsys.readouterr().err
        with pytest.warns(UserWarning, match="damaged"):
            edp.load_policy(copy)
        assert main(["eval", str(copy), "--offline", "--model-steps", "4", "--q-rows", "100"]) == 0
        assert "damaged" in capsys.readouterr().err
