import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edp.errors import UserError
from edp.policies import DistilledConfig

OBS = jnp.asarray(np.random.default_rng(0).standard_normal((30, 3)), jnp.float32)
ACTION = jnp.asarray(np.random.default_rng(1).uniform(-1, 1, (30, 2)), jnp.float32)


def build(**options):
    return DistilledConfig(hidden=(8,), calls=4, **options).build(3, 2, jax.random.key(0))


def test_the_loss_is_the_flows_and_the_distance_of_the_student_from_what_the_flow_leads_to():
    policy, key = build(distillation=3.0), jax.random.key(5)
    fit = policy.fit(OBS, ACTION, key)
    flow_key, noise_key = jax.random.split(key)
    noise = jax.random.normal(noise_key, (30, 2))
    output = policy.student(jnp.concatenate([OBS, noise], axis=1))
    distance = np.mean((np.asarray(output) - np.asarray(policy.teacher.follow(OBS, noise))) ** 2, axis=1)
    np.testing.assert_allclose(fit.bc, policy.teacher.fit(OBS, ACTION, flow_key).bc + 3 * distance, rtol=1e-5)
    np.testing.assert_allclose(fit.action, np.clip(output, -1, 1), rtol=1e-6)
    np.testing.assert_array_equal(fit.log_prob, -fit.bc)
    assert fit.precision == 3.0


def test_values_move_the_student_and_distillation_leaves_the_teacher_alone():
    policy, key = build(), jax.random.key(5)
    by_action = jax.jit(jax.grad(lambda policy: policy.fit(OBS, ACTION, key).action.sum()))(policy)
    assert all(not np.asarray(leaf).any() for leaf in jax.tree.leaves(by_action.teacher))
    assert any(np.asarray(leaf).any() for leaf in jax.tree.leaves(by_action.student))
    teacher = jax.grad(lambda policy: policy.fit(OBS, ACTION, key).bc.mean())(policy).teacher
    alone = jax.grad(lambda flow: flow.fit(OBS, ACTION, jax.random.split(key)[0]).bc.mean())(policy.teacher)
    for one, other in zip(jax.tree.leaves(teacher), jax.tree.leaves(alone), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_the_student_acts():
    policy, key = build(), jax.random.key(2)
    noise = jax.random.normal(jax.random.split(key)[0], (30, 2))
    np.testing.assert_allclose(policy.sample(OBS, key), np.clip(policy.student_of(OBS, noise), -1, 1), rtol=1e-6)


def test_a_wrong_sampler_is_refused():
    with pytest.raises(UserError, match="sampler of a flow"):
        build(sampler="ddim")
