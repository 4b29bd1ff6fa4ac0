"""Packed rows, and blocks of them that are drawn from like the whole."""

import shutil

import jax
import numpy as np
import pytest
from scipy.stats import kstest

from edp.batches import Tail, Transitions
from edp.cli import main
from edp.data import stream

ROWS = 5_000


def columns(rows=ROWS, tail=False):
    """Every number tells its row and its column."""
    at = lambda place, width: (np.arange(rows)[:, None] + 0.01 * (place + np.arange(width))).astype(np.float32)  # noqa: E731
    one = lambda place: at(place, 1)[:, 0]  # noqa: E731
    after = Tail(one(20), at(21, 3), one(24)) if tail else None  # pyright: ignore
    return Transitions(at(0, 3), at(3, 2), one(5), at(6, 3), one(9), after)  # pyright: ignore


@pytest.mark.parametrize("tail", [False, True])
@pytest.mark.parametrize("on_disk", [False, True])
def test_packed_rows_unpack_to_themselves(tail, on_disk, monkeypatch, tmp_path):
    monkeypatch.setenv("EDP_CACHE", str(tmp_path))
    data, packed = columns(70_000, tail), stream.pack(columns(70_000, tail), on_disk)
    assert isinstance(packed.rows, np.memmap) == on_disk
    jax.tree.map(np.testing.assert_array_equal, packed.layout.unpack(packed.rows), data)
    batch = jax.tree.map(jax.numpy.asarray, packed).draw(jax.random.key(0), 50)
    rows = np.floor(np.asarray(batch.obs[:, 0])).astype(int)
    jax.tree.map(np.testing.assert_array_equal, batch, jax.tree.map(lambda column: column[rows], data))
    assert not list(tmp_path.iterdir())  # a file that is mapped has no name


def test_no_room_for_the_file_is_said_in_a_line(monkeypatch, tmp_path):
    monkeypatch.setenv("EDP_CACHE", str(tmp_path / "file" / "inner"))
    (tmp_path / "file").touch()
    with pytest.raises(stream.UserError, match="to stream"):
        stream.pack(columns(), on_disk=True)


def blocks(size, rows=ROWS, seed=0):
    return stream.Blocks(stream.pack(columns(rows)), size, seed, lambda data: data)


def test_blocks_depend_on_seed_and_number_alone():
    several = blocks(1_024)
    in_turn = [several(number).rows for number in range(4)]
    np.testing.assert_array_equal(blocks(1_024)(2).rows, in_turn[2])
    np.testing.assert_array_equal(several(1).rows, in_turn[1])  # backwards
    assert not np.array_equal(in_turn[0], in_turn[1])
    assert not np.array_equal(blocks(1_024, seed=1)(0).rows, in_turn[0])


def test_a_pass_takes_every_row():
    several = blocks(1_280)
    assert several.runs == 4 * several.each - 6 == 250
    seen = np.bincount(
        np.concatenate([several.rows_of(number).ravel() for number in range(4)])[: 250 * several.run], minlength=ROWS
    )
    assert seen.min() == 1
    assert seen.sum() == 250 * several.run == ROWS


def test_draws_from_blocks_are_as_good_as_uniform():
    """Every row is drawn equally often in the long run, and a block is a fair sample of the data set."""
    rows, epochs, draws = 10 * 64 * stream.RUN, 400, 2_000
    several, rng = blocks(rows // 10, rows), np.random.default_rng(0)
    assert (several.run, several.each, several.runs) == (stream.RUN, 64, 640)
    counts, means = np.zeros(160), []
    for number in range(epochs):
        drawn = rng.choice(several.rows_of(number).ravel(), draws)
        counts += np.bincount(drawn * 160 // rows, minlength=160)
        means.append(drawn.mean() / rows)
    expected = epochs * draws / 160
    assert np.abs(counts - expected).max() < 4 * np.sqrt(expected)  # no more than independent draws would scatter
    assert 0.8 < np.std(means) * np.sqrt(12 * several.each) < 1.1
    assert kstest((np.array(means) - 0.5) / np.std(means), "norm").pvalue > 1e-3


def test_training_in_blocks_resumes_bit_for_bit(hopper_file, tmp_path, fails):
    words = ["train", "hopper-medium-v2", "--data", hopper_file, "--steps", 60, "--epoch-steps", 20, "--eval-every", 60]
    words += [
        "--checkpoint-every",
        20,
        "--episodes",
        1,
        "--hidden",
        16,
        "--critic-hidden",
        16,
        "--calls",
        2,
        "--eas",
        1,
        "--preset",
        "edp",  # no decay of the learning rate, which depends on the number of steps
    ]
    run = lambda out, *more: main([str(word) for word in [*words, "--out", out, "--block", 64, *more]])  # noqa: E731
    assert run(tmp_path / "a") == 0
    assert run(tmp_path / "b", "--steps", 20) == 0
    assert main(["train", "--resume", str(tmp_path / "b"), "--steps", "60"]) == 0
    metrics = [(tmp_path / name / "metrics.jsonl").read_text(encoding="utf-8") for name in "ab"]
    assert metrics[0] == metrics[1]
    shutil.rmtree(tmp_path / "b")
    assert main([str(word) for word in [*words, "--out", tmp_path / "b"]]) == 0
    assert (tmp_path / "b" / "metrics.jsonl").read_text(encoding="utf-8") != metrics[0]  # it did make a difference
    fails("train", "hopper-medium-v2", "--data", hopper_file, "--algo", "dt", "--block", "64", "--out", tmp_path / "c")
