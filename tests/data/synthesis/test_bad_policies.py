"""Policies that are damaged or do not fit, and processes that are killed: one line, and nothing is written."""

import multiprocessing
import os
import time

import numpy as np
import pytest

from edp.data.synthesis import make
from edp.data.synthesis.behaviours import BUILT_IN, ScaledGaussian, SquashedGaussian, load_actor
from edp.data.synthesis.demonstrations import COLUMNS, load_demonstrations
from edp.data.synthesis.jobs import run_jobs
from edp.data.synthesis.make import Behaviour, make_dataset
from edp.errors import UserError
from support.killed import KilledJob, run_sleeping_jobs


def weights(obs=11, act=3, width=4, **changes):
    shapes = {"w0": (obs, width), "w1": (width, width), "w_mu": (width, act), "w_ls": (width, act)}
    found = {name: np.full(shape, 0.1) for name, shape in shapes.items()}
    found |= {name.replace("w", "b"): np.zeros(shape[1]) for name, shape in shapes.items()}
    return found | changes


def scaled(**changes):
    sizes = {"l0": (4, 11), "l1": (4, 4), "l2": (3, 4)}
    found = {f"{name}_weight": np.zeros(shape) for name, shape in sizes.items()}
    found |= {f"{name}_bias": np.zeros(shape[0]) for name, shape in sizes.items()}
    found |= {"in_shift": np.zeros(11), "in_scale": np.ones(11)}
    return found | {"out_shift": np.zeros(3), "out_scale": np.ones(3), "log_std": np.zeros(3)} | changes


DAMAGED = {
    "NaN": (weights(b1=np.full(4, np.nan)), "b1 holds NaN"),
    "Inf": (weights(w_ls=np.full((4, 3), np.inf)), "w_ls holds NaN, Inf"),
    "too large for float32": (weights(w0=np.full((11, 4), 1e300)), "w0 holds NaN, Inf or too large"),
    "words": (weights(b0=np.array(["a"] * 4)), "b0 holds <U1, not numbers"),
    "layers of other widths": (weights(w1=np.zeros((5, 4))), "layers do not fit together"),
    "a bias of another width": (weights(b_mu=np.zeros(1)), "layers do not fit together"),
    "one number": (weights(w0=np.float64(3)), "layers do not fit together"),
    "NaN of another layout": (scaled(log_std=np.full(3, np.nan)), "log_std holds NaN"),
    "a scale of zero": (scaled(in_scale=np.zeros(11)), "in_scale has zeros"),
    "another environment's observations": (weights(obs=17), "maps 17 observations to 3 actions"),
    "another environment's actions": (weights(act=6), "maps 11 observations to 6 actions"),
}


@pytest.mark.parametrize("which", DAMAGED)
def test_damaged_policies_are_refused_and_nothing_is_written(which, tmp_path, fails):
    arrays, message = DAMAGED[which]
    np.savez(tmp_path / "policy.npz", **arrays)
    make_new = ["data", "make", tmp_path / "new.hdf5", "--env", "edp/hopper-d4rl-v2", "--transitions", "50"]
    assert message in fails(*make_new, "--policy", tmp_path / "policy.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["policy.npz"]


def test_good_policies_are_still_read(tmp_path):
    for number, (arrays, kind) in enumerate(((weights(), SquashedGaussian), (scaled(), ScaledGaussian))):
        np.savez(tmp_path / f"{number}.npz", **arrays)
        assert isinstance(load_actor(tmp_path / f"{number}.npz"), kind)


class Sick(SquashedGaussian):
    """A policy that gives NaN after some steps."""

    steps = 0

    def __call__(self, inputs, rng):
        self.steps += 1
        return super().__call__(inputs, rng) * (np.nan if self.steps > 20 else 1)


def test_a_policy_that_becomes_nan_is_refused_while_it_acts(tmp_path):
    behaviour = Behaviour("sick", Sick(weights()))
    with pytest.raises(UserError, match=r"policy .sick. gave an action with NaN or Inf after .* steps"):
        make_dataset(tmp_path / "a.hdf5", "edp/hopper-d4rl-v2", [behaviour], 2000, 0, processes=1)
    assert list(tmp_path.iterdir()) == []


def test_rows_with_nan_are_not_written(tmp_path, monkeypatch):
    class NanJob:
        rows = 4

        def __call__(self, on_progress):
            columns = {key: np.zeros(4, kind) for key, kind in zip(make.KEYS, make.DTYPES, strict=True)}
            return make.Part(columns | {"rewards": np.full(4, np.nan)}, cut=False)

    with pytest.raises(UserError, match="not written, because Hopper gave rewards with NaN or Inf"):
        make.run_and_write(tmp_path / "a.hdf5", "Hopper", [("one", [NanJob()])], 0, processes=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", ["qpos", "ctrl", "length"])
def test_demonstrations_with_nan_are_refused(wrong, tmp_path):
    arrays = {name: np.zeros((4, width)) for name, width in COLUMNS.items()} | {"length": np.array([4])}
    np.savez(tmp_path / "good.npz", **arrays)
    assert len(load_demonstrations(tmp_path / "good.npz")) == 1
    np.savez(tmp_path / "bad.npz", **arrays | {wrong: np.full(arrays[wrong].shape, np.nan)})
    with pytest.raises(UserError, match=f"{wrong} holds NaN"):
        load_demonstrations(tmp_path / "bad.npz")


def test_a_killed_process_is_one_line(tmp_path, monkeypatch, fails):
    with pytest.raises(UserError, match="a process that makes data was killed"):
        run_jobs([KilledJob(), KilledJob()], 2, lambda rows: None, narrow=False)
    monkeypatch.setattr(make, "split_into_jobs", lambda *_: [KilledJob(), KilledJob()])
    policy = BUILT_IN / "hopper-medium.npz"
    words = ["--env", "edp/hopper-d4rl-v2", "--transitions", "100", "--processes", "2", "--policy", policy]
    assert "try fewer --processes" in fails("data", "make", tmp_path / "new.hdf5", *words)
    assert list(tmp_path.iterdir()) == []


def is_running(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(happens, seconds=60):
    ends = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_processes_end_when_the_one_that_started_them_is_killed(tmp_path):
    parent = multiprocessing.get_context("spawn").Process(target=run_sleeping_jobs, args=(tmp_path,))
    parent.start()
    wait_until(lambda: [len(file.read_text()) > 0 for file in tmp_path.iterdir()] == [True, True])
    workers = [file.read_text() for file in tmp_path.iterdir()]
    assert all(map(is_running, workers))
    parent.kill()
    parent.join()
    wait_until(lambda: not any(map(is_running, workers)), seconds=20)


def test_more_rows_than_any_memory_holds_are_refused(tmp_path):
    with pytest.raises(UserError, match="`transitions=100000000000000`: the rows would need at least 10 PB of memory"):
        make_dataset(tmp_path / "a.hdf5", "edp/hopper-d4rl-v2", [], 10**14, 0)
