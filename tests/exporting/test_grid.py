"""Every kind of policy, sampler and selection: the same random numbers give the same actions in JAX, ONNX and C."""

import jax
import numpy as np
import pytest

from edp.exporting import c_writer, check
from edp.exporting.export import run_onnx
from edp.exporting.onnx_writer import write_onnx
from edp.exporting.plan import make_plan
from edp.exporting.signals import read_signals
from support.tiny_policy import ACT, observations, tiny_policy

CLOSE = 1e-5  # of the action's range
STATES = 64
DIFFUSION = {
    "dpm of order 3": {},
    "dpm of order 2 for v": {"order": 2, "prediction": "v", "grid": "quadratic"},
    "dpm++ for v, relative energy": {"sampler": "dpm++", "calls": 6, "prediction": "v", "eas_energy": "relative"},
    "dpm++, scaled, the best": {"sampler": "dpm++", "calls": 6, "grid": "logsnr", "eas_temperature": 0.0}
    | {"policy_scale": 1.5},
    "ddim for v, scaled": {"sampler": "ddim", "calls": 6, "policy_scale": 1.3, "prediction": "v", "eas": 3}
    | {"eas_temperature": 0.3},
    "ddpm with vp": {"sampler": "ddpm", "calls": 6, "schedule": "vp", "diffusion_steps": 6, "eas": 1},
    "ddpm, less noise, spread": {"sampler": "ddpm", "calls": 6, "initial_noise": 0.7, "eas": 4, "eas_spread": 0.2},
    "without noise": {"initial_noise": 0.0, "eas": 1, "order": 1},
    "without noise, spread": {"initial_noise": 0.0, "eas": 4, "eas_spread": 0.3},
    "a large ensemble, other widths": {"critic_norm": True, "critic_activation": "relu", "critics": 4, "eas": 5}
    | {"eas_energy": "relative", "hidden": (17, 33, 20), "critic_hidden": (40,)},
    "no critic": {"algo": "bc", "eas": 1},
}
FLOWS = {
    "flow": {"policy": "flow"},
    "flow by midpoints, scaled": {"policy": "flow", "sampler": "midpoint", "calls": 5, "policy_scale": 1.3, "eas": 3},
    "flow, less noise, one call": {"policy": "flow", "calls": 1, "initial_noise": 0.7, "eas": 1},
    "mean flow": {"policy": "meanflow", "eas": 4},
    "distilled": {"policy": "distilled", "eas": 3},
    "mean flow, less noise": {"policy": "meanflow", "initial_noise": 0.5, "eas": 1},
}
OTHERS = {
    "gaussian": {"policy": "gaussian", "activation": "relu"},
    "gaussian, EAS": {"policy": "gaussian", "eas": 10, "max_log_std": -1.0},
    "gaussian, a fixed std, squashed": {"policy": "gaussian", "eas": 5, "std": 0.3, "squash": True},
    "gaussian, one std, scaled": {"policy": "gaussian", "eas": 5, "shared_std": True, "policy_scale": 2.0},
    "deterministic": {"policy": "deterministic"},
    "deterministic, spread": {"policy": "deterministic", "eas": 5, "eas_spread": 0.3, "activation": "relu"},
}
CASES = DIFFUSION | FLOWS | OTHERS


@pytest.mark.parametrize("name", CASES)
def test_the_same_noise_gives_the_same_action(name, monkeypatch):
    policy = tiny_policy(**CASES[name])
    plan = make_plan(policy)
    reference = check.reference_actions(policy, plan, observations(STATES), jax.random.key(7))
    assert {given.name: given.shape[1:] for given in plan.inputs} == {
        name: array.shape[1:] for name, array in reference.inputs.items()
    }
    spread = np.ptp(reference.actions, axis=0) / np.ptp([plan.units.low, plan.units.high], axis=0)
    assert (spread > 0.01).all()  # otherwise nothing is compared
    actions = run_onnx(write_onnx(plan).SerializeToString(), reference.inputs)
    found = check.compare(actions, reference, plan.units)
    assert found.greatest_difference < CLOSE
    assert found.ties == 0
    monkeypatch.setattr(c_writer, "COMPILE", (*c_writer.COMPILE, "-Wall", "-Wextra", "-Werror", "-pedantic"))
    text = c_writer.write_c(plan, "policy.c", read_signals(policy), name)
    with c_writer.Compiled(text, "policy.c", plan) as compiled:
        found = check.compare(compiled(reference.inputs), reference, plan.units)
    assert found.greatest_difference < CLOSE
    assert found.ties == 0


@pytest.mark.parametrize("options", [{"eas": 5}, {"sampler": "ddpm", "calls": 6, "eas": 1}])
def test_it_acts_as_the_loaded_policy(options):
    """The keys are those of ``LoadedPolicy.act`` in its first two steps."""
    policy, obs = tiny_policy(**options), observations(9)
    plan = make_plan(policy)
    content = write_onnx(plan).SerializeToString()
    keys = jax.random.split(jax.random.fold_in(jax.random.key(0), 0), (1, 9))[0]
    for step in range(2):
        now = jax.vmap(jax.random.fold_in, (0, None))(keys, step)
        drawn = jax.jit(jax.vmap(lambda key: check.draw_inputs(plan, key)))(now)
        inputs = {"observation": obs} | {name: np.asarray(array) for name, array in drawn.items()}
        assert len(inputs) == len(plan.inputs)
        np.testing.assert_allclose(run_onnx(content, inputs), policy.act(obs), rtol=1e-5, atol=1e-3)


def test_random_numbers_that_cannot_matter_are_no_inputs():
    names = lambda **options: [given.name for given in make_plan(tiny_policy(**options)).inputs]  # noqa: E731
    assert names(calls=3) == ["observation", "noise", "gumbel"]
    assert names(calls=3, eas_temperature=0.0) == ["observation", "noise"]
    assert names(calls=3, initial_noise=0.0) == ["observation"]  # all candidates are the same
    assert names(policy="gaussian", shared_std=True) == ["observation"]
    assert names(policy="gaussian", eas=3, initial_noise=0.0) == ["observation"]
    plan = make_plan(tiny_policy(sampler="ddpm", calls=4, eas=6))
    assert plan.inputs[1].shape == ("batch", 6, 4, ACT)  # the last step of DDPM adds no noise
