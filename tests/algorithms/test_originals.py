"""Options with which the baselines follow their own papers, and short trainings with these presets."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edp.algorithms import ALGORITHMS, AWAC, CQL, DT, IQL, TD3BC, InitialState, Update
from edp.algorithms.cql import conservative_gap
from edp.algorithms.crr import advantage_over
from edp.config import defaults
from edp.config.originals import ORIGINALS
from edp.config.successors import SUCCESSORS
from edp.devices.seeds import seed_keys
from edp.errors import UserError
from edp.networks import Critic
from edp.policies import POLICIES, DeterministicConfig, DiffusionConfig, GaussianConfig, TransformerConfig
from edp.training import epoch as train
from support.tiny_batch import BATCH, CRITIC, FakeCritic

from .test_contract import ACT, OBS, SMALL, leaves, make_data

SQUASHED = GaussianConfig((8,), squash=True)


def start(algorithm, policy=None):
    """The initial state, and the compiled update."""
    policy = policy or DeterministicConfig((8,))
    init = jax.jit(lambda key: algorithm.init(policy.build(1, 1, key), 1, 1, key))
    return init(jax.random.key(0)), jax.jit(algorithm.update)


def moved(before, after):
    return any((a != b).any() for a, b in zip(leaves(before), leaves(after), strict=True))


def largest_step(before, after):
    return max(np.abs(a - b).max() for a, b in zip(leaves(before), leaves(after), strict=True))


def test_delay_leaves_the_policy_and_the_targets_alone_on_other_steps():
    algorithm = TD3BC(policy_every=3, policy_target_every=1, policy_target_after=0, critic_hidden=(8,))
    state, update = start(algorithm)
    for step in range(1, 7):
        before = state
        state, metrics = update(state, BATCH, jax.random.key(step))
        assert moved(before.critic.model, state.critic.model)
        for part in (lambda s: s.policy, lambda s: s.policy.target, lambda s: s.critic.target):
            assert moved(part(before), part(state)) == (step % 3 == 0)
        assert all(np.isfinite(value) for value in metrics.values())


def test_a_step_that_is_not_left_out_is_the_usual_one():
    options = {"policy_target_every": 1, "policy_target_after": 0, "critic_hidden": (8,)}
    state, update = start(TD3BC(policy_every=2, **options))
    state = state._replace(step=jnp.ones((), jnp.int32))
    delayed, usual = update(state, BATCH, jax.random.key(1)), TD3BC(**options).update(state, BATCH, jax.random.key(1))
    for a, b in zip(leaves(delayed), leaves(usual), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("choice", "part"), [("average", "target"), ("online", "model")])
def test_which_parameters_choose_next_actions(choice, part):
    state, update = start(TD3BC(next_actions=choice, critic_hidden=(8,)))
    other = start(TD3BC(critic_hidden=(8,)))[0]._replace(step=state.step)
    other = jax.tree.map(lambda leaf: leaf + 1.0, other.policy.model)
    loss = float(update(state, BATCH, jax.random.key(1))[1]["critic_loss"])
    for name in ("model", "target"):
        changed = state._replace(policy=state.policy._replace(**{name: other}))
        assert (float(update(changed, BATCH, jax.random.key(1))[1]["critic_loss"]) != loss) == (name == part)


def test_td3_can_improve_the_first_critic_only():
    critics, policy = Critic(1, 1, (8,), jax.random.key(0)), DeterministicConfig((8,)).build(1, 1, jax.random.key(1))
    first = float(critics(BATCH.obs, policy.sample(BATCH.obs, jax.random.key(0)))[0].mean())
    for key in jax.random.split(jax.random.key(2), 8):
        assert float(TD3BC(improved="first").policy_loss(policy, critics, BATCH, key)[1]["q_policy"]) == pytest.approx(
            first, rel=1e-5
        )


def test_the_policys_own_learning_rate():
    """Adam's first step is the learning rate, in every parameter with a gradient."""
    state, update = start(TD3BC(lr=1e-2, policy_lr=1e-4, critic_hidden=(8,)))
    after, _ = update(state, BATCH, jax.random.key(1))
    assert largest_step(state.policy.model, after.policy.model) == pytest.approx(1e-4, rel=1e-2)
    assert largest_step(state.critic.model, after.critic.model) == pytest.approx(1e-2, rel=1e-2)


@pytest.mark.parametrize("schedule", [True, False])
def test_decay_of_the_policys_learning_rate_alone(schedule):
    state, update = start(IQL(lr_decay=2, critic_schedule=schedule, critic_hidden=(8,)), GaussianConfig((8,)))
    for step in range(2):
        state, _ = update(state, BATCH, jax.random.key(step))
    after, _ = update(state, BATCH, jax.random.key(2))
    assert not moved(state.policy.model, after.policy.model)
    for part in ("critic", "value"):
        assert moved(getattr(state, part).model, getattr(after, part).model) != schedule


def test_awac_with_a_sampled_baseline():
    policy, key = GaussianConfig((8,)).build(1, 1, jax.random.key(0)), jax.random.key(3)
    algorithm = AWAC(samples=2, beta=0.5, max_weight=1e6)
    _, metrics = algorithm.policy_loss(policy, CRITIC, BATCH, key)  # pyright: ignore
    fit_key, advantage_key = jax.random.split(key)
    fit = policy.fit(BATCH.obs, BATCH.action, fit_key)
    others = policy.around(BATCH.obs, fit, advantage_key, 2)
    advantage = advantage_over(CRITIC, BATCH, others, algorithm.low)  # pyright: ignore
    assert float(metrics["weight"]) == pytest.approx(float(jnp.exp(advantage / 0.5).mean()), rel=1e-5)
    assert (others[0] != fit.action).all()


def test_cqls_penalty_with_densities_estimates_the_integral_of_exp_q():
    """With Q = 0 everywhere, the integral over [-1, 1]² is 4, whichever distribution the actions come from."""
    policy = SQUASHED.build(1, 2, jax.random.key(0))
    batch = BATCH._replace(action=jnp.zeros((2, 2)))
    keys = jax.random.split(jax.random.key(1))
    others, log_density = CQL(importance=True, samples=2000).samples_with_densities(policy, batch, *keys)
    assert others.shape == (6000, 2, 2)
    zero = FakeCritic(lambda obs, action: jnp.zeros((2, obs.shape[0])))
    for rows in (slice(0, 2000), slice(2000, 4000), slice(4000, 6000)):
        gap = conservative_gap(zero, batch, others[rows], log_density[rows])
        np.testing.assert_allclose(gap, np.log(4), atol=0.1)
    again = policy.fit(batch.obs, others[0], keys[0]).log_prob  # the first actions are those in the states themselves
    np.testing.assert_allclose(log_density[0], again, atol=0.02)


@pytest.mark.parametrize(("max_log_std", "sign"), [(2.0, -1), (-4.0, 1)])
def test_the_tuned_weight_rises_where_the_entropy_is_too_small(max_log_std, sign):
    """The entropy of tanh(N(0, 1)) is above -1, that of tanh(N(0, exp(-4)²)) is below."""
    policy = GaussianConfig((8,), squash=True, max_log_std=max_log_std)
    state, update = start(CQL(entropy=0.5, tune_entropy=True, lr=1e-2, samples=2, critic_hidden=(8,)), policy)
    at_zero = BATCH._replace(obs=jnp.zeros((2, 1)))  # where the network's output is 0 at the start
    after, metrics = update(state, at_zero, jax.random.key(1))
    assert float(after.log_entropy.model) == pytest.approx(np.log(0.5) + sign * 1e-2, rel=1e-4)
    assert (float(metrics["entropy"]) > -1) == (sign < 0)


def test_what_cqls_options_need():
    with pytest.raises(UserError, match="`tune_entropy` starts from `entropy`"):
        CQL(tune_entropy=True).check(SQUASHED)
    with pytest.raises(UserError, match="`importance` needs the density"):
        CQL(importance=True).check(DiffusionConfig())


def test_cql_can_leave_q_in_its_own_unit():
    policy, key = SQUASHED.build(1, 1, jax.random.key(0)), jax.random.key(1)
    loss, metrics = CQL(alpha=1.0, scale_q=False, bc_weight=0.0).policy_loss(policy, CRITIC, BATCH, key)  # pyright: ignore
    assert float(loss) == pytest.approx(-float(metrics["q_policy"]), rel=1e-5)


def test_dropout_of_the_transformer_is_for_training_only():
    config = TransformerConfig(context=4, width=16, layers=1, dropout=0.5)
    model, windows = config.build(OBS, ACT, jax.random.key(0)), make_data("windows").draw(jax.random.key(1), 16)
    plain = config.__class__(context=4, width=16, layers=1).build(OBS, ACT, jax.random.key(0))
    np.testing.assert_array_equal(model(windows), plain(windows))
    losses = [float(DT().policy_loss(model, windows, jax.random.key(i))[0]) for i in range(3)]
    assert len(set(losses)) == 3
    assert float(DT().policy_loss(plain, windows, jax.random.key(0))[0]) not in losses


@pytest.mark.parametrize("preset", [*ORIGINALS, *SUCCESSORS])
def test_every_original_trains(preset):
    algorithm, policy = defaults.choose_names(None, None, preset)
    classes = ALGORITHMS[algorithm], POLICIES[policy]
    of_data = {"steps", "batch_size", "normalise", "rewards", "act_with", "best", "best_of"}
    of_data |= {"eas", "eas_energy", "eas_temperature"}
    layers = [
        (origin, {name: value for name, value in values.items() if name not in of_data})
        for origin, values in defaults.layers(algorithm, policy, "kitchen", {}, preset)
    ]
    chosen, config = defaults.resolve(classes, [*layers, ("small", SMALL | {"lr_decay": 100})], {}).parts
    chosen.check(config)
    before = train.init_states(InitialState(chosen, config, OBS, ACT), seed_keys(range(1)))
    data, keys = make_data(chosen.learns_from), train.epoch_keys(seed_keys(range(1)), 1, 4)
    kept = jax.tree.map(jnp.copy, before)
    after, metrics, _ = train.epoch(Update(chosen), before, data, keys, batch_size=16)
    for part in ("policy", "critic", "value"):
        if getattr(kept, part, None) is not None:
            pairs = zip(leaves(getattr(kept, part).model), leaves(getattr(after, part).model), strict=True)
            assert all((a != b).any() and np.isfinite(b).all() for a, b in pairs), part
    assert all(np.isfinite(value).all() for value in metrics.values())
