"""The rows of the training data that are kept with a run."""

import json
import shutil

import numpy as np
import pytest

import edp
from edp.acting.reference import FILE, Reference, observed_ranges
from edp.cli import main
from edp.data import episodes
from edp.errors import UserError
from edp.runs.directory import Run
from edp.runs.load import read_run_data, read_spec


def test_the_nearest_of_many(rng):
    points, rows = rng.normal(size=(1200, 3)).astype(np.float32), rng.normal(size=(40, 3)).astype(np.float32)
    by_hand = [min(np.linalg.norm(point - row) for row in rows) for point in points]
    np.testing.assert_allclose(Reference(rows, True).distances(points), by_hand, rtol=1e-5)
    np.testing.assert_allclose(Reference(rows, True).distances(rows), 0, atol=1e-6)


def test_far_from_zero_no_digits_are_lost():
    rows = np.float32([[10_000.0, 0], [10_001, 0]])
    np.testing.assert_allclose(Reference(rows, True).distances(np.float32([[10_000.25, 0]])), 0.25)


def test_the_usual_distance_is_that_between_episodes():
    """Rows of one episode are 0.01 apart, and episodes 1: new data comes in episodes."""
    episode = np.repeat(np.arange(5), 20)
    rows = np.stack([episode + 0.01 * np.tile(np.arange(20), 5), np.zeros(100)], axis=1).astype(np.float32)
    assert Reference(rows, True).usual_distance(episode) == pytest.approx(1.0, abs=0.02)
    assert Reference(rows, True).usual_distance(np.zeros(100, int)) < 0.2  # parts of one episode
    assert Reference(rows[:1], True).usual_distance(episode[:1]) == 0


def test_observations_that_are_not_normalised_are_measured_in_their_std(rng):
    rows = np.stack([1000 * rng.normal(size=50), rng.normal(size=50), np.full(50, 7.0)], axis=1).astype(np.float32)
    reference = Reference(rows, False)
    step = np.float32([[0, rows[:, 1].std() * 100, 0]])
    assert reference.distances(rows[:1] + step)[0] == pytest.approx(100, rel=0.05)
    assert reference.distances(rows[:1] + np.float32([[0, 0, 5]]))[0] == 0  # it never changes: its range tells


def test_ranges_are_those_of_the_rows_that_are_learned(plant_run):
    run = Run.open(plant_run)
    spec = read_spec(run)
    dataset = read_run_data(run, spec, run.config["file"])
    learned = episodes.prepare_episodes(dataset, "raw", 1.0, spec.data.validation).learned
    assert 0 < len(learned.obs) < len(dataset.obs)
    low, high = (spec.units.observations_from_network(side(learned.obs, axis=0)) for side in (np.min, np.max))
    np.testing.assert_allclose(spec.signals.low, low, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(spec.signals.high, high, rtol=1e-5, atol=1e-5)
    kept = np.load(plant_run / FILE)
    assert len(kept) == 1000
    assert {row.tobytes() for row in kept} <= {row.tobytes() for row in learned.obs}


def test_ranges_over_several_pieces(monkeypatch, rng):
    monkeypatch.setattr("edp.acting.reference.PIECE", 7)
    obs, marks = rng.normal(size=(50, 2)).astype(np.float32), np.arange(50) > 20
    low, high = observed_ranges(obs, marks)
    np.testing.assert_array_equal(np.float32(low), obs[21:].min(axis=0))
    np.testing.assert_array_equal(np.float32(high), obs[21:].max(axis=0))


@pytest.mark.parametrize("harm", ["missing", "damaged"])
def test_a_run_without_it_is_not_acted_with_unchecked(plant_run, tmp_path, harm):
    folder = shutil.copytree(plant_run, tmp_path / "run")
    whole = (folder / FILE).read_bytes()
    (folder / FILE).unlink()
    if harm == "damaged":
        (folder / FILE).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(UserError, match=r"reference.npy: missing or damaged"):
        edp.load_policy(folder)
    assert np.isfinite(edp.load_policy(folder, outside="ignore").act(np.zeros(9))).all()
    assert main(["train", "--resume", str(folder), "--steps", "40", "--quiet"]) == 0
    assert (folder / FILE).read_bytes() == whole
    edp.load_policy(folder)


def test_names_that_were_changed_later_are_refused(plant_run, tmp_path):
    folder = shutil.copytree(plant_run, tmp_path / "run")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["signals"]["actions"].reverse()
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(UserError, match=r"signals.actions\[0\] is \"heater_%\", and was \"valve_%\""):
        edp.load_policy(folder)
