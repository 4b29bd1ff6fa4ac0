"""ONNX models: what any onnxruntime since 2023 takes, and what it does with odd input."""

import jax
import numpy as np
import pytest

from edp.errors import UserError
from edp.exporting import check, onnx_writer
from edp.exporting.export import run_onnx
from edp.exporting.graph import Graph
from edp.exporting.onnx_writer import Randomness, write_onnx
from edp.exporting.plan import make_plan
from support.tiny_policy import ACT, OBS, UNITS, observations, tiny_policy

EULER = 0.5772156649


@pytest.fixture(scope="module")
def plan():
    return make_plan(tiny_policy(sampler="dpm++", calls=6, eas=4))


def inputs_of(plan, count):
    rng = np.random.default_rng(0)
    drawn = {given.name: rng.standard_normal((count, *given.shape[1:]), np.float32) for given in plan.inputs[1:]}
    return {"observation": observations(count), **drawn}


def test_old_versions_can_read_it(plan):
    model = write_onnx(plan)
    assert [(entry.domain, entry.version <= 17) for entry in model.opset_import] == [("", True)]
    assert model.ir_version <= 8


def test_the_batch_is_free_and_rows_do_not_depend_on_each_other(plan):
    content, inputs = write_onnx(plan).SerializeToString(), inputs_of(plan, 7)
    together = run_onnx(content, inputs)
    assert together.shape == (7, ACT)
    for row in range(7):
        alone = run_onnx(content, {name: array[row : row + 1] for name, array in inputs.items()})
        np.testing.assert_allclose(alone[0], together[row], rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_gives_no_action(plan, bad):
    inputs = inputs_of(plan, 3)
    inputs["observation"][1, 2] = bad
    actions = run_onnx(write_onnx(plan).SerializeToString(), inputs)
    assert np.isnan(actions[1]).all()
    assert np.isfinite(actions[[0, 2]]).all()


def test_random_numbers_inside(plan):
    content = write_onnx(plan, "inside").SerializeToString()
    obs = np.repeat(observations(1), 200, axis=0)
    actions = run_onnx(content, {"observation": obs})
    assert len(np.unique(actions[:, 0])) > 100
    *_, low, high = UNITS.arrays
    assert ((actions >= low) & (actions <= high)).all()
    seeded = [write_onnx(plan, "inside", seed).SerializeToString() for seed in (1, 1, 2)]
    first, again, other = (run_onnx(model, {"observation": obs}) for model in seeded)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("kind", ["normal", "gumbel"])
def test_the_distributions_of_random_numbers_inside(plan, kind):
    graph = Graph()
    random = Randomness(graph, plan, inside=True, seed=0)
    drawn = random.noise()[0] if kind == "normal" else random.gumbel()
    graph.add("Identity", drawn, name="action")
    width = ACT if kind == "normal" else 4
    model = graph.model("action", ("rows", width), "random").SerializeToString()
    numbers = np.asarray(run_onnx(model, {"observation": np.zeros((20_000, OBS), np.float32)}))
    mean, std = (0.0, 1.0) if kind == "normal" else (EULER, np.pi / np.sqrt(6))
    np.testing.assert_allclose(numbers.mean(axis=0), np.full(width, mean), atol=0.04)
    np.testing.assert_allclose(numbers.std(axis=0), np.full(width, std), atol=0.04)
    assert np.abs(np.corrcoef(numbers.T) - np.eye(width)).max() < 0.04


def test_a_chain_that_is_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(onnx_writer, "MOST_CALLS", 5)
    with pytest.raises(UserError, match="6 network calls are too many"):
        write_onnx(make_plan(tiny_policy(calls=6, eas=1)))


@pytest.mark.parametrize("heads", [1, 2])
def test_histories(heads):
    sizes = {"width": 16, "layers": 2, "heads": heads, "context": 4}
    policy = tiny_policy(algo="dt", policy="transformer", return_scale=100.0, target_return=400.0, **sizes)
    plan = make_plan(policy)
    reference = check.reference_histories(policy, plan, observations(40), jax.random.key(0))
    content = write_onnx(plan).SerializeToString()
    found = check.compare(run_onnx(content, reference.inputs), reference, plan.units)
    assert found.greatest_difference < 1e-5
    assert np.ptp(reference.actions, axis=0).min() > 0.01
    hidden = reference.inputs["mask"] == 0
    assert hidden.any()
    changed = reference.inputs | {"observations": np.where(hidden[..., None], 9.0, reference.inputs["observations"])}
    changed["observations"] = changed["observations"].astype(np.float32)
    np.testing.assert_allclose(run_onnx(content, changed), reference.actions, rtol=1e-5, atol=1e-3)


def test_a_history_as_it_is_lived():
    """An episode of ``LoadedPolicy.act``, with the context that the documentation describes."""
    policy = tiny_policy(algo="dt", policy="transformer", width=16, layers=1, context=3, target_return=5.0)
    content, obs, context = write_onnx(make_plan(policy)).SerializeToString(), observations(5), 3
    seen, chosen, goals, goal = [], [], [], 5.0
    for step in range(5):
        reward = 0.5 * step
        goal -= reward
        seen, goals = [*seen, obs[step]], [*goals, goal]
        count = min(step + 1, context)
        inputs = {
            "observations": np.zeros((1, context, OBS), np.float32),
            "actions": np.zeros((1, context, ACT), np.float32),
            "returns_to_go": np.zeros((1, context), np.float32),
            "steps": np.zeros((1, context), np.int64),
            "mask": np.zeros((1, context), np.float32),
        }
        inputs["observations"][0, -count:] = seen[-count:]
        if count > 1:
            inputs["actions"][0, -count:-1] = chosen[-(count - 1) :]
        inputs["returns_to_go"][0, -count:] = goals[-count:]
        inputs["steps"][0, -count:] = np.arange(step + 1)[-count:]
        inputs["mask"][0, -count:] = 1
        action = policy.act(obs[step], reward=reward)
        np.testing.assert_allclose(run_onnx(content, inputs)[0], action, rtol=1e-5, atol=1e-3)
        chosen.append(action)
