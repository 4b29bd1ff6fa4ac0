"""Replays of a log: exact for the log's own actions, and right for others in a process that is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edp.acting import model, replay
from edp.acting.judge import one_of
from support.linear import STEPS, actors_of, run_process

RATE = 0.2


@pytest.fixture(autouse=True)
def small_model(monkeypatch):
    monkeypatch.setattr(model, "HIDDEN", (64, 64))
    monkeypatch.setattr(model, "MEMBERS", 2)


def replayed(data, slope, steps):
    whole = model.with_memory(data, RATE)
    chosen = replay.choose_stretches(data, STEPS, 30)
    fitted = model.ModelFit(whole, np.array([True, False]), RATE, steps).model
    stretches, support = replay.read_stretches(whole, chosen), replay.find_support(whole, chosen)
    actors = actors_of(slope)
    return stretches, replay.replay(fitted, support, stretches, *one_of(actors, 0), actors.selection, jax.random.key(0))


def test_the_log_s_own_actions_give_the_record_in_any_model():
    """The model is not trained at all."""
    stretches, found = replayed(run_process(40, slope=-0.5, spread=0.0), -0.5, steps=1)
    np.testing.assert_allclose(found.reward, np.broadcast_to(stretches.reward, found.reward.shape), atol=1e-4)
    assert found.outside.mean() < 0.01


def test_other_actions_have_the_effect_of_the_process():
    """The truth is the same process with the same noise."""
    data = run_process(80, slope=-0.2, spread=0.4)
    stretches, found = replayed(data, -0.6, steps=800)
    truth = run_process(80, slope=-0.6, spread=0.0)
    episodes = np.asarray(stretches.episode, int)
    better = truth.reward.reshape(80, STEPS)[episodes] - data.reward.reshape(80, STEPS)[episodes]
    gain = np.asarray(found.reward) - np.asarray(stretches.reward)[None]
    assert better.mean() > 0.05
    assert gain.mean() == pytest.approx(better.mean(), rel=0.15)


def test_steps_far_from_the_log_are_marked():
    data = run_process(80, slope=-0.2, spread=0.05)
    near, far = (replayed(data, slope, steps=100)[1].outside.mean() for slope in (-0.2, 3.0))
    assert near < 0.05
    assert far > 0.5


def test_stretches_come_from_many_episodes_and_keep_their_ends():
    data = run_process(10, slope=-0.2, spread=0.4)
    chosen = replay.choose_stretches(data, STEPS // 2, 10)
    assert len({int(data.episode[rows.start]) for rows in chosen}) == 10
    assert len(replay.choose_stretches(data, STEPS // 2, 10**6)) == 10, "half of them are kept for comparison"
    not_done = data.not_done.copy()
    not_done[4] = 0  # the first episode ends after five steps
    short = data._replace(not_done=not_done, episode=data.episode + (np.arange(len(not_done)) > 4))
    stretches = replay.read_stretches(short, [slice(0, 5), slice(45, 65)])
    assert np.asarray(stretches.known.sum(axis=1)).tolist() == [5, 20]
    assert np.asarray(stretches.counted.sum(axis=1)).tolist() == [20, 20], "after the end, the reward is 0"


def test_the_end_of_the_process_is_shared_with_the_record():
    survive = lambda *parts: float(replay.survival(*map(jnp.asarray, parts)))  # noqa: E731
    assert survive(0.3, 0.3, 1.0, 0.0) == 1.0, "the record's own action has the record's end"
    assert survive(0.3, 0.3, 1.0, 1.0) == 0.0
    assert survive(0.6, 0.2, 1.0, 0.0) == pytest.approx(0.5)
    assert survive(0.1, 0.4, 1.0, 1.0) == pytest.approx(0.75)
    assert survive(0.1, 0.4, 0.0, 0.0) == pytest.approx(0.9), "after the record"
    # Over both cases it is the probability of the policy's action.
    for end, recorded in ((0.2, 0.7), (0.7, 0.2)):
        both = (1 - recorded) * survive(end, recorded, 1.0, 0.0) + recorded * survive(end, recorded, 1.0, 1.0)
        assert both == pytest.approx(1 - end)
