"""What every algorithm with every policy must do."""

import os
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edp import checkpoint, train
from edp.algorithms import ALGORITHMS
from edp.algorithms.actor_critic import ActorCritic
from edp.evaluate import act
from edp.policies import POLICIES
from edp.types import Transitions

OBS, ACT, ROWS = 5, 3, 200
SMALL = {"diffusion": {"hidden": (16, 16), "calls": 3}, "deterministic": {"hidden": (16, 16)}}
PAIRS = [(algorithm, policy) for algorithm in ALGORITHMS for policy in POLICIES]


def make_data():
    rng = np.random.default_rng(0)
    columns = rng.standard_normal((ROWS, OBS)), rng.uniform(-1, 1, (ROWS, ACT)), rng.standard_normal(ROWS)
    rest = rng.standard_normal((ROWS, OBS)), (rng.random(ROWS) > 0.1)
    return Transitions(*(jnp.asarray(column, jnp.float32) for column in columns + rest))


@pytest.fixture(scope="module")
def data():
    return make_data()


@cache  # so that tests share what they compile
def setup(algorithm, policy):
    critic = {"critic_hidden": (16, 16)} if issubclass(ALGORITHMS[algorithm], ActorCritic) else {}
    chosen = ALGORITHMS[algorithm](**critic)

    def init(key):
        policy_key, algorithm_key = jax.random.split(key)
        built = POLICIES[policy](**SMALL[policy]).build(OBS, ACT, policy_key)
        return chosen.init(built, OBS, ACT, algorithm_key)

    return chosen.update, jax.jit(init)


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


@pytest.mark.parametrize(("algorithm", "policy"), PAIRS)
class TestContract:
    def test_policy_shapes_ranges_and_gradients(self, algorithm, policy, data):
        _, init = setup(algorithm, policy)
        model = init(jax.random.key(0)).policy.model
        sample = jax.jit(lambda m: m.sample(data.obs, jax.random.key(1)))(model)
        assert sample.shape == (ROWS, ACT)
        assert np.abs(sample).max() <= 1
        fit = jax.jit(lambda m: m.fit(data.obs, data.action, jax.random.key(1)))(model)
        assert (fit.bc.shape, fit.action.shape, fit.log_prob.shape) == ((ROWS,), (ROWS, ACT), (ROWS,))
        for part in ("bc", "action", "log_prob"):
            total = lambda m, part=part: getattr(m.fit(data.obs, data.action, jax.random.key(1)), part).sum()  # noqa: E731
            grads = jax.jit(jax.grad(total))(model)
            assert all(np.isfinite(leaf).all() for leaf in leaves(grads)), part
            assert any(np.abs(leaf).max() > 0 for leaf in leaves(grads)), part

    def test_an_update_changes_every_network(self, algorithm, policy, data):
        update, init = setup(algorithm, policy)
        state = init(jax.random.key(0))
        after, metrics = jax.jit(update)(state, data, jax.random.key(1))
        for part in ("policy", "critic", "value"):
            if getattr(state, part, None) is None:
                continue
            before_leaves, after_leaves = leaves(getattr(state, part).model), leaves(getattr(after, part).model)
            assert all(np.isfinite(leaf).all() for leaf in after_leaves)
            assert all((a != b).any() for a, b in zip(before_leaves, after_leaves, strict=True))
        assert all(np.isfinite(float(value)) for value in metrics.values())

    def test_seeds_together_equal_seeds_apart(self, algorithm, policy, data):
        update, init = setup(algorithm, policy)

        def run(seeds):
            keys = train.seed_keys(seeds)
            states = train.init_states(init, keys)
            return train.epoch(update, states, data, train.epoch_keys(keys, 1), steps=3, batch_size=16)

        together = run(range(3))
        apart = [run(range(i, i + 1)) for i in range(3)]
        for i, one in enumerate(apart):
            for a, b in zip(leaves(together), leaves(one), strict=True):
                np.testing.assert_allclose(a[i], b[0], rtol=2e-4, atol=2e-5)

    def test_a_checkpoint_gives_the_same_state_back(self, algorithm, policy, tmp_path):
        _, init = setup(algorithm, policy)
        states = train.init_states(init, train.seed_keys(range(2)))
        checkpoint.save(tmp_path / "c", states)
        like = jax.eval_shape(jax.vmap(init), train.seed_keys(range(2)))
        restored = checkpoint.restore(tmp_path / "c", like)
        assert jax.tree.structure(restored) == jax.tree.structure(states)
        for a, b in zip(leaves(states), leaves(restored), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)

    def test_training_in_two_parts_equals_training_in_one(self, algorithm, policy, data, tmp_path):
        update, init = setup(algorithm, policy)
        keys = train.seed_keys(range(1))
        step = partial(train.epoch, update, data=data, steps=3, batch_size=16)

        states = train.init_states(init, keys)
        for number in (1, 2):
            states, _ = step(states, keys=train.epoch_keys(keys, number))

        again, _ = step(train.init_states(init, keys), keys=train.epoch_keys(keys, 1))
        checkpoint.save(tmp_path / "c", again)
        again = checkpoint.restore(tmp_path / "c", again)
        again, _ = step(again, keys=train.epoch_keys(keys, 2))
        for a, b in zip(leaves(states), leaves(again), strict=True):
            np.testing.assert_array_equal(a, b)

    def test_acting(self, algorithm, policy):
        _, init = setup(algorithm, policy)
        states = train.init_states(init, train.seed_keys(range(2)))
        keys = jax.random.split(jax.random.key(0), 2)
        critics = states.critic and states.critic.model
        actions = act(states.policy.model, critics, jnp.zeros((2, 4, OBS)), keys, 0, 10)
        assert actions.shape == (2, 4, ACT)
        assert np.abs(actions).max() <= 1


def test_seeds_are_split_over_devices():
    """In a process with four virtual devices; the checks are in run_sharded.py."""
    script = Path(__file__).with_name("run_sharded.py")
    env = os.environ | {"XLA_FLAGS": os.environ["XLA_FLAGS"] + " --xla_force_host_platform_device_count=4"}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
