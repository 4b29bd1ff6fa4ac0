"""Seeds that become NaN, and disks that are full."""

import errno
import os
import subprocess

import h5py
import jax
import numpy as np
import pytest

from edp.cli import main
from edp.files import write_errors
from edp.runs.checkpoints import Checkpoints
from edp.runs.directory import Run
from edp.training.epoch import PROGRAMS
from support.small_run import EPOCH, STEPS, arrays, assert_same, command, digest, train

DAMAGES = int(os.environ.get("EDP_DAMAGES", "3"))
WRITES = 27  # of JSON and logs in a run of 200 steps


def forget_programs():
    jax.clear_caches()
    PROGRAMS.clear()


class TestNaN:
    """A loss that is NaN from some step on, in the seeds whose batch begins with certain rows."""

    @pytest.fixture
    def spoil(self, monkeypatch):
        """Makes the critic's loss NaN in one seed, from some step on."""
        from edp.algorithms.td3bc import TD3BC

        update = TD3BC.update

        def spoilt(self, state, batch, key, *, rows, at):
            state, metrics = update(self, state, batch, key)
            bad = (state.step >= at) & jax.numpy.isin(batch.reward[0], rows)
            return state, metrics | {"critic_loss": jax.numpy.where(bad, jax.numpy.nan, metrics["critic_loss"])}

        forget_programs()  # they are shared by algorithms with equal options
        yield lambda rows, at: monkeypatch.setattr(
            TD3BC, "update", lambda self, state, batch, key: spoilt(self, state, batch, key, rows=rows, at=at)
        )
        forget_programs()

    def test_of_all_seeds_stops_the_run_with_its_last_good_checkpoint(
        self, spoil, hopper_file, whole, tmp_path, capsys
    ):
        spoil(read_rewards(hopper_file), at=150)
        out = tmp_path / "nan"
        assert main([str(word) for word in train(hopper_file, out)]) == 1
        said = capsys.readouterr().err
        assert "seed 0: critic_loss became NaN or Inf at step 150" in said
        status = Run.open(out).status
        assert (status["state"], status["step"]) == ("failed", 160)
        assert "critic_loss" in status["reason"]
        assert Checkpoints(Run.open(out).checkpoints).steps()[-1] == 140
        assert all(np.isfinite(leaf).all() for leaf in arrays(out).values())

    def test_of_one_seed_lets_the_others_go_on(self, spoil, hopper_file, tmp_path, capsys):
        """The batches decide which seed fails: only one of the two draws this row first after step 150."""
        spoil(read_rewards(hopper_file)[:1], at=150)
        out = tmp_path / "nan"
        words = [*train(hopper_file, out), "--steps", 260, "--seeds", 3]
        code = main([str(word) for word in words])
        failed = Run.open(out).status["failed_seeds"]
        assert 0 < len(failed) < 3, "other batches than when this was written: choose another row"
        assert code == 1
        assert "failed: critic_loss became NaN or Inf at step" in capsys.readouterr().out
        run = Run.open(out)
        assert run.status["state"] == "finished"
        rows = [int(seed) for seed in failed]
        last = run.evaluations()[-1]
        assert last["step"] == 260
        for seed in range(3):
            assert all((score is None) == (seed in rows) for score in last["scores"][seed])
            assert (run.metrics()[-1]["metrics"]["critic_loss"][seed] is None) == (seed in rows)
        first_bad = min(int(why.split()[-1].replace(",", "")) for why in failed.values())
        kept = Checkpoints(run.checkpoints).steps()
        assert (first_bad - 1) // EPOCH * EPOCH in kept  # the last good one of that seed


def read_rewards(path):
    with h5py.File(path) as file:
        return jax.numpy.asarray(file["rewards"][:], jax.numpy.float32)


class TestFullDisk:
    """ENOSPC at every write of a run: one line, exit code 2, and what was there before is still good."""

    @pytest.mark.parametrize("at", range(1, WRITES + 2) if DAMAGES > 10 else [1, 4, 9])
    def test_of_logs_and_json(self, at, hopper_file, tmp_path, fails, monkeypatch):
        left = at

        def full(original):
            def call(*args, **kwargs):
                nonlocal left
                left -= 1
                if left <= 0:
                    raise OSError(errno.ENOSPC, "No space left on device")
                return original(*args, **kwargs)

            return call

        monkeypatch.setattr("edp.runs.directory.Run._append", with_errors(full(Run._append)))
        monkeypatch.setattr("edp.files.os.replace", full(os.replace))
        out = tmp_path / "full"
        if at > WRITES:
            assert main([str(word) for word in train(hopper_file, out, "--steps", 200)]) == 0
            assert left > 0
            return
        said = fails(*train(hopper_file, out, "--steps", 200))
        assert "No space left on device" in said
        left = 10_000
        if (out / "config.json").exists():
            assert main(["train", "--resume", str(out), "--quiet"]) == 0
            assert Run.open(out).status["state"] == "finished"

    def test_of_a_checkpoint(self, hopper_file, whole, tmp_path):
        """A real one: a file size limit makes large writes fail."""
        out = tmp_path / "full"
        subprocess.run(command(*train(hopper_file, out, "--steps", 100)), check=True, capture_output=True)
        limited = ["bash", "-c", 'ulimit -f 16; trap "" XFSZ; exec "$@"', "-", *command("train", "--resume", out)]
        done = subprocess.run([*limited, "--steps", str(STEPS)], capture_output=True, text=True)
        assert done.returncode == 2, done.stderr
        assert "cannot write" in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr
        assert Run.open(out).status["state"] in ("failed", "killed")
        assert digest(out) == digest(out, 100)
        subprocess.run(command("train", "--resume", out), check=True, capture_output=True)
        assert_same(out, whole)


def with_errors(function):
    """As Run's own methods turn errors of writing into one line."""

    def call(self, name, row):
        with write_errors(self.folder / name):
            return function(self, name, row)

    return call
