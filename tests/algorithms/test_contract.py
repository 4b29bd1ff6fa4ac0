"""Tests that every algorithm passes with every policy that it can train."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edp.acting.selection import Selection, act
from edp.algorithms import ALGORITHMS, InitialState, Update
from edp.config import defaults
from edp.data import episodes, stream
from edp.data.dataset import Dataset
from edp.devices.seeds import seed_keys, seed_sharding
from edp.errors import UserError
from edp.policies import POLICIES
from edp.runs.checkpoints import Checkpoints
from edp.training import epoch as train

OBS, ACT, ROWS = 5, 3, 200
SMALL = {
    **{"hidden": (16,), "critic_hidden": (16,), "calls": 3, "samples": 2, "evaluation_steps": 2},
    **{"context": 4, "width": 16, "layers": 1},
}


def configure(algorithm, policy, **options):
    """An algorithm and a policy with their default options, but small networks."""
    classes, layers = (
        (ALGORITHMS[algorithm], POLICIES[policy]),
        defaults.layers(algorithm, policy, "locomotion", {}, None),
    )
    return defaults.resolve(classes, [*layers, ("small", SMALL)], options).parts


def allowed(algorithm, policy) -> bool:
    chosen, config = configure(algorithm, policy)
    try:
        chosen.check(config)
    except UserError:
        return False
    return True


PAIRS = [(algorithm, policy) for algorithm in ALGORITHMS for policy in POLICIES if allowed(algorithm, policy)]


@cache
def make_data(kind="transitions"):
    """Random episodes of 20 steps, in each form that an algorithm may learn from."""
    rng = np.random.default_rng(0)
    dataset = Dataset(
        obs=rng.standard_normal((ROWS, OBS), np.float32),
        action=rng.uniform(-1, 1, (ROWS, ACT)).astype(np.float32),
        reward=rng.standard_normal(ROWS, np.float32),
        next_obs=rng.standard_normal((ROWS, OBS), np.float32),
        not_done=(rng.random(ROWS) > 0.1).astype(np.float32),
        episode=np.arange(ROWS) // 20,
        returns=np.zeros(0),
        behaviours=[],
    )
    made = {
        "transitions": lambda: stream.pack(episodes.to_transitions(dataset)),
        "tails": lambda: stream.pack(episodes.to_transitions(dataset, episodes.episode_tails(dataset, 0.99))),
        "next actions": lambda: stream.pack(
            episodes.to_transitions(dataset, following=episodes.following_actions(dataset, 1))
        ),
        "windows": lambda: episodes.to_sequences(dataset, SMALL["context"], 10.0),
    }[kind]()
    return jax.tree.map(jnp.asarray, made)


@cache  # so that tests share what they compile
def setup(algorithm, policy):
    chosen, config = configure(algorithm, policy)
    return Update(chosen), InitialState(chosen, config, OBS, ACT)


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def test_the_allowed_pairs_are_these():
    """All but the transformer, which goes with DT alone, and DAC, which goes with diffusion alone."""
    free = {(algorithm, policy) for algorithm in ALGORITHMS for policy in POLICIES}
    allowed = {(a, p) for a, p in free if (a == "dt") == (p == "transformer") and (a != "dac" or p == "diffusion")}
    assert set(PAIRS) == allowed


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "diffusion"])
def test_dac_says_which_policy_it_guides(policy):
    algorithm, config = configure("dac", policy)
    with pytest.raises(UserError, match="only `algo=dt` trains" if policy == "transformer" else "`policy=diffusion`"):
        algorithm.check(config)
    with pytest.raises(UserError, match="`prediction=noise`"):
        algorithm.check(configure("dac", "diffusion", prediction="v")[1])


VARIANTS = [
    ("diffusion", {}),
    ("diffusion", {"likelihood": "elbo"}),
    ("diffusion", {"train_action": "chain"}),
    ("flow", {}),
    ("meanflow", {}),
    ("distilled", {}),
    ("gaussian", {}),
    ("gaussian", {"std": 0.5}),
    ("gaussian", {"squash": True}),
    ("deterministic", {}),
]


@pytest.mark.parametrize(("policy", "options"), VARIANTS)
class TestPolicy:
    def test_shapes_ranges_and_gradients(self, policy, options):
        packed = make_data()
        data = packed.layout.unpack(packed.rows)
        model = configure("bc", policy, **options)[1].build(OBS, ACT, jax.random.key(0))
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

        near = model.around(data.obs, fit, jax.random.key(2), 4)
        assert near.shape == (4, ROWS, ACT)
        assert (near[0] != near[1]).any()


class Training:
    """The part of the contract that a new pair of known parts has to pass."""

    @pytest.fixture
    def epoch(self, algorithm, policy):
        """Three steps for the given seeds, from their start or from given states."""
        update, init = setup(algorithm, policy)
        data = make_data(ALGORITHMS[algorithm].learns_from)

        def run(seeds, states=None, number=1):
            keys = seed_keys(seeds)
            states = train.init_states(init, keys) if states is None else states
            return train.epoch(update, states, data, train.epoch_keys(keys, number, 3), batch_size=16)[:2]

        return run

    def test_training_changes_every_network(self, algorithm, policy, epoch):
        before = train.init_states(setup(algorithm, policy)[1], seed_keys(range(1)))
        after, metrics = epoch(range(1))
        for part in ("policy", "critic", "value"):
            if getattr(before, part, None) is None:
                continue
            before_leaves, after_leaves = leaves(getattr(before, part).model), leaves(getattr(after, part).model)
            assert all(np.isfinite(leaf).all() for leaf in after_leaves)
            assert all((a != b).any() for a, b in zip(before_leaves, after_leaves, strict=True))
        assert all(np.isfinite(value).all() for value in metrics.values())


class Contract(Training):
    """Programs are compiled for one seed and for two, once each, and the tests below share them."""

    def test_seeds_together_equal_seeds_apart(self, epoch):
        together = epoch(range(2))
        for i in range(2):
            for a, b in zip(leaves(together), leaves(epoch(range(i, i + 1))), strict=True):
                np.testing.assert_allclose(a[i], b[0], rtol=2e-4, atol=2e-5)

    def test_resumed_from_a_checkpoint_equals_uninterrupted(self, epoch, tmp_path):
        states, _ = epoch(range(1), epoch(range(1))[0], number=2)
        half, _ = epoch(range(1))
        checkpoints = Checkpoints(tmp_path / "checkpoints", total=2)
        checkpoints.save(1, half)
        checkpoints.finish()
        restored = checkpoints.load(1, half).tree
        checkpoints.close()
        assert jax.tree.structure(restored) == jax.tree.structure(half)
        for a, b in zip(leaves(half), leaves(restored), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
        again, _ = epoch(range(1), jax.device_put(restored, seed_sharding(1)), number=2)
        for a, b in zip(leaves(states), leaves(again), strict=True):
            np.testing.assert_array_equal(a, b)

    def test_acting(self, algorithm, policy):
        _, init = setup(algorithm, policy)
        states = train.init_states(init, seed_keys(range(2)))
        keys = jax.random.split(jax.random.key(0), (2, 4))
        critics = states.critic and states.critic.model
        memories = jax.vmap(lambda model: jax.vmap(lambda _: model.memory(1))(jnp.arange(4)))(states.policy.model)
        for step in range(2):
            inputs = jnp.full((2, 4, OBS), 0.1 * step), jnp.zeros((2, 4)), jnp.full((2, 4), step)
            memories, actions = act(states.policy.model, critics, memories, *inputs, keys, Selection(candidates=10))
            assert actions.shape == (2, 4, ACT)
            assert np.abs(actions).max() <= 1


def parametrised(pairs):
    return pytest.mark.parametrize(("algorithm", "policy"), pairs)


def pairs_with(*policies):
    """The tests of a class stay in one process, so that the work is split by policies."""
    return parametrised([pair for pair in PAIRS if pair[1] in policies])


@pairs_with("diffusion")
class TestWithDiffusion(Contract):
    pass


FLOWS = ("flow", "meanflow", "distilled")
ALGORITHMS_OF_FLOWS = ("td3bc", "iql")  # one that uses actions, and one that uses likelihoods


@parametrised([pair for pair in PAIRS if pair[1] in FLOWS and pair[0] in ALGORITHMS_OF_FLOWS])
class TestWithFlows(Contract):
    pass


@parametrised([pair for pair in PAIRS if pair[1] in FLOWS and pair[0] not in ALGORITHMS_OF_FLOWS])
class TestOtherAlgorithmsWithFlows(Training):
    pass


@pairs_with("gaussian")
class TestWithGaussian(Contract):
    pass


@pairs_with("deterministic", "transformer")
class TestWithOthers(Contract):
    pass


def test_seeds_are_split_over_devices(hopper_file, tmp_path):
    """In a process with eight virtual devices; the checks are in run_sharded.py."""
    script = Path(__file__).with_name("run_sharded.py")
    env = os.environ | {"XLA_FLAGS": os.environ["XLA_FLAGS"] + " --xla_force_host_platform_device_count=8"}
    done = subprocess.run([sys.executable, script, hopper_file, tmp_path], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
