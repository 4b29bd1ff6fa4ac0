"""The model of a process, its memory, and the observations that actions change."""

import jax.numpy as jnp
import numpy as np
import pytest

from edp.acting.driven import driven_columns
from edp.acting.model import MEMBERS, ModelFit, with_memory
from support.linear import STEPS, run_process

RATE = 0.2


@pytest.fixture(scope="module")
def data():
    return run_process(60, slope=-0.2, spread=0.5)


def test_memory_is_the_slow_average(data):
    whole = with_memory(data, RATE)
    rows = slice(STEPS, 2 * STEPS)  # the second episode
    memory = np.append(data.obs[STEPS], data.action.mean(axis=0))
    for obs, next_obs, action, after in zip(
        whole.obs[rows], data.next_obs[rows], data.action[rows], whole.next_obs[rows], strict=True
    ):
        np.testing.assert_allclose(obs[2:], memory, atol=1e-5)
        memory = memory + RATE * (np.append(next_obs, action) - memory)
        np.testing.assert_allclose(after, np.append(next_obs, memory), atol=1e-5)


def test_what_goes_its_own_way_is_not_driven(data):
    assert driven_columns(data).tolist() == [True, False]


def test_driven_through_another_observation(data):
    """The second observation does not change with the action, but with the first."""
    rng = np.random.default_rng(0)
    for part in (data.obs, data.next_obs):
        part[:, 1] = 0  # it is overwritten below
    obs, next_obs = data.obs.copy(), data.next_obs.copy()
    for start in range(0, len(obs), STEPS):
        level = rng.normal()
        for row in range(start, start + STEPS):
            obs[row, 1] = level
            level = 0.5 * level + obs[row, 0]
            next_obs[row, 1] = level
    assert driven_columns(data._replace(obs=obs, next_obs=next_obs)).all()


def test_a_linear_process_is_found(monkeypatch):
    data = run_process(60, slope=-0.2, spread=0.5)
    whole = with_memory(data, RATE)
    monkeypatch.setattr("edp.acting.model.HIDDEN", (64, 64))
    model = ModelFit(whole, np.array([True, False]), RATE, steps=500).model
    every = lambda part: jnp.broadcast_to(jnp.asarray(part)[None], (MEMBERS, *part.shape))  # noqa: E731
    probe = whole.obs[:50].copy()
    before, reward, end = model.predict(every(probe), every(np.zeros((50, 1), np.float32)))
    after, _, _ = model.predict(every(probe), every(np.ones((50, 1), np.float32)))
    np.testing.assert_allclose(np.asarray(after - before)[..., 0].mean(), 0.5, atol=0.05)
    np.testing.assert_allclose(np.asarray(after - before)[..., 1].mean(), 0, atol=0.05)
    assert np.corrcoef(np.asarray(reward).mean(axis=0), data.reward[:50])[0, 1] > 0.9
    assert float(end.max()) == 0, "no episode ended by itself"


def test_ends_of_the_process_are_found(monkeypatch):
    """The process ends where x is above 1."""
    monkeypatch.setattr("edp.acting.model.HIDDEN", (64, 64))
    data = run_process(60, slope=0.0, spread=0.5)
    ended = data.obs[:, 0] > 1
    episode = data.episode + np.cumsum(np.append(0, ended[:-1]))
    whole = with_memory(data._replace(not_done=1 - ended.astype(np.float32), episode=episode), RATE)
    model = ModelFit(whole, np.array([True, False]), RATE, steps=500).model
    every = lambda part: jnp.broadcast_to(jnp.asarray(part)[None], (MEMBERS, *part.shape))  # noqa: E731
    end = np.asarray(model.predict(every(whole.obs), every(whole.action))[2]).mean(axis=0)
    assert end[data.obs[:, 0] > 1.3].mean() > 0.8
    assert end[data.obs[:, 0] < 0.7].mean() < 0.05
