"""A linear process with a state that the actions change, one that they do not, and a reward."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from edp.acting.actors import Actors
from edp.data.dataset import Dataset

STEPS = 40


class Line(eqx.Module):
    """The policy a = slope · (the first observation)."""

    slope: jax.Array

    def act(self, obs, key, control):
        return jnp.clip(self.slope * obs[:, :1], -1, 1)


def actors_of(*slopes):
    """Policies with these slopes, as seeds of one run."""
    return Actors(Line(jnp.array(slopes)), None)


def run_process(episodes, slope, spread, seed=0, noise_seed=0):
    """Play episodes with actions slope · x + noise. Both observations are driven by the same noise for all slopes.

    x' = 0.9 x + 0.5 a + 0.3 w + noise, w' = 0.8 w + noise, and the reward is -x².
    """
    rng, own = np.random.default_rng(noise_seed), np.random.default_rng(seed)
    x, w = rng.normal(size=(2, episodes))
    rows = {name: [] for name in ("obs", "action", "reward", "next_obs")}
    for _ in range(STEPS):
        action = np.clip(slope * x + spread * own.normal(size=episodes), -1, 1)
        after = 0.9 * x + 0.5 * action + 0.3 * w + 0.1 * rng.normal(size=episodes)
        w_after = 0.8 * w + 0.3 * rng.normal(size=episodes)
        for name, part in zip(
            rows, (np.stack([x, w], 1), action[:, None], -(x**2), np.stack([after, w_after], 1)), strict=True
        ):
            rows[name].append(part)
        x, w = after, w_after
    whole = {name: np.concatenate(np.stack(parts, 1)).astype(np.float32) for name, parts in rows.items()}
    episode = np.repeat(np.arange(episodes), STEPS).astype(np.int32)
    return Dataset(
        **whole, not_done=np.ones(len(episode), np.float32), episode=episode, returns=np.zeros(0), behaviours=[]
    )
