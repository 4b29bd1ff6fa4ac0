"""Default values of options, and where each value comes from."""

from dataclasses import fields

import pytest

from edp.algorithms import ALGORITHMS
from edp.config import defaults
from edp.config.spec import DataOptions, EvalOptions, TrainOptions
from edp.errors import UserError
from edp.policies import POLICIES


def resolved(algorithm="td3bc", policy="diffusion", domain="locomotion", preset=None, task=None, **given):
    classes = ALGORITHMS[algorithm], POLICIES[policy], DataOptions, TrainOptions, EvalOptions
    return defaults.resolve(classes, defaults.layers(algorithm, policy, domain, task or {}, preset), given).values


# The paper's table of hyper-parameters: learning rate, clipping, loss weight, epochs of 1,000 steps, batch size.
@pytest.mark.parametrize(
    ("domain", "row"),
    [
        ("locomotion", (0.0003, 5, 1.0, 2000, 256)),
        ("antmaze", (0.0003, 5, 1.0, 1000, 256)),
        ("adroit", (0.00003, 5, 0.1, 1000, 256)),
        ("kitchen", (0.0003, 5, 0.005, 1000, 256)),
    ],
)
def test_the_papers_table(domain, row):
    values = resolved(domain=domain)
    names = ("lr", "clip", "loss_weight", "steps", "batch_size")
    assert [values[name].origin for name in names] == [f"domain {domain}"] * 5
    got = tuple(values[name].value for name in names)
    assert got == (*row[:3], row[3] * 1000, row[4])


@pytest.mark.parametrize(
    ("domain", "algorithm", "rewards"),
    [
        ("locomotion", "td3bc", "raw"),
        ("locomotion", "iql", "return-range"),
        ("antmaze", "td3bc", "centred"),
        ("antmaze", "iql", "minus-one"),
        ("adroit", "iql", "min-max"),
        ("kitchen", "crr", "min-max"),
    ],
)
def test_the_papers_rewards(domain, algorithm, rewards):
    assert resolved(algorithm, domain=domain)["rewards"].value == rewards


def test_expectile_by_domain():
    assert resolved("iql", domain="antmaze")["expectile"] == (0.9, "domain antmaze")
    assert resolved("iql", domain="kitchen")["expectile"] == (0.7, "default")


def test_later_layers_win_and_the_command_line_wins_over_all():
    assert resolved()["lr"].origin == "domain locomotion"
    assert resolved(task={"steps": 7})["steps"] == (7, "task")
    assert resolved("iql", "gaussian")["bc_weight"] == (0.0, "iql with gaussian")
    assert resolved("iql")["bc_weight"] == (1.0, "default")
    assert resolved(preset="dql")["diffusion_steps"] == (5, "preset dql")
    assert resolved(preset="dql", diffusion_steps=100)["diffusion_steps"] == (100, "command line")


def test_onestep_evaluates_for_half_of_the_steps_unless_told():
    assert resolved("onestep", steps=30)["evaluation_steps"] == (15, "half of `steps`")
    assert resolved("onestep", steps=30, evaluation_steps=5)["evaluation_steps"] == (5, "command line")


def test_choices_of_algorithm_and_policy():
    assert defaults.choose_names(None, None, None) == ("td3bc", "diffusion")
    assert defaults.choose_names("dt", None, None) == ("dt", "transformer")
    assert defaults.choose_names(None, None, "bc-10") == ("bc", "diffusion")
    assert defaults.choose_names("iql", "gaussian", "edp") == ("iql", "gaussian")
    with pytest.raises(UserError, match="did you mean 'edp-without-ap'"):
        defaults.choose_names(None, None, "edp-without-pa")


def test_a_preset_that_cannot_be_followed_is_refused():
    with pytest.raises(UserError, match="preset dql sets `sampler`"):
        resolved("td3bc", "gaussian", preset="dql")


@pytest.mark.parametrize("preset", defaults.PRESETS)
def test_every_preset_builds(preset):
    import jax

    algorithm, policy = defaults.choose_names(None, None, preset)
    classes = ALGORITHMS[algorithm], POLICIES[policy], DataOptions, TrainOptions, EvalOptions
    parts = defaults.resolve(classes, defaults.layers(algorithm, policy, "locomotion", {}, preset), {}).parts
    parts[0].check(parts[1])
    jax.eval_shape(lambda key: parts[1].build(3, 2, key), jax.random.key(0))


TABLES = (
    defaults.DOMAINS,
    defaults.DOMAIN_WITH,
    defaults.POLICY,
    defaults.ALGORITHM,
    defaults.PAIR,
    defaults.PRESETS,
)


@pytest.mark.parametrize("table", TABLES)
def test_every_name_in_the_tables_is_known(table):
    classes = (*ALGORITHMS.values(), *POLICIES.values(), DataOptions, TrainOptions, EvalOptions)
    options = {entry.name for cls in classes for entry in fields(cls)} | {"algo"}
    names = {*ALGORITHMS, *POLICIES, *defaults.DOMAINS, *defaults.PRESETS}
    for key, values in table.items():
        assert {*key} <= names if isinstance(key, tuple) else key in names
        assert values.keys() <= options


def test_the_papers_loss_weight_is_for_diffusion_policies():
    assert resolved("td3bc", "diffusion", "kitchen")["loss_weight"] == (0.005, "domain kitchen")
    assert resolved("td3bc", "deterministic", "kitchen")["loss_weight"] == (1.0, "default")


def test_runs_too_short_for_an_average_act_online():
    assert resolved(steps=1000)["act_with"] == ("online", "no average before `policy_target_after`")
    assert resolved(steps=1001)["act_with"] == ("average", "default")
    assert resolved(steps=10, act_with="average")["act_with"] == ("average", "command line")


def test_parts_can_be_resolved_without_the_rest():
    """As the benchmark does."""
    layers = defaults.layers("onestep", "diffusion", "locomotion", {}, None)
    assert (
        defaults.resolve((ALGORITHMS["onestep"], POLICIES["diffusion"]), layers, {}).parts[0].evaluation_steps == 50_000
    )
    with pytest.raises(UserError, match="unknown option of this algorithm with this policy 'calls'"):
        defaults.resolve((ALGORITHMS["onestep"],), layers, {"calls": 3})
