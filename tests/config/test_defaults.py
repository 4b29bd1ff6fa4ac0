"""Default values of options, and where each value comes from."""

from dataclasses import fields

import pytest

from edp.algorithms import ALGORITHMS
from edp.config import defaults
from edp.config.choice import choose
from edp.config.spec import DataOptions, EvalOptions, TrainOptions
from edp.data.tasks import get_task
from edp.errors import UserError
from edp.policies import POLICIES


def resolved(algorithm="td3bc", policy="diffusion", domain="locomotion", preset=None, task=None, **given):
    classes = ALGORITHMS[algorithm], POLICIES[policy], DataOptions, TrainOptions, EvalOptions
    return defaults.resolve(classes, defaults.layers(algorithm, policy, domain, task or {}, preset), given).values


@pytest.mark.parametrize("steps", [-3, 0, 10**99])
def test_wrong_steps_are_named(steps):
    settings = choose("td3bc", options={"steps": steps}).resolve(get_task("hopper-medium-v2"))
    with pytest.raises(UserError, match="`steps` must be"):
        assert settings.parts


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
    assert resolved(preset="dql", diffusion_steps=100)["diffusion_steps"] == (100, "user")


def test_onestep_evaluates_for_half_of_the_steps_unless_told():
    assert resolved("onestep", steps=30)["evaluation_steps"] == (15, "half of `steps`")
    assert resolved("onestep", steps=30, evaluation_steps=5)["evaluation_steps"] == (5, "user")


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


CLASSES = (*ALGORITHMS.values(), *POLICIES.values(), DataOptions, TrainOptions, EvalOptions)
OPTIONS = {entry.name for cls in CLASSES for entry in fields(cls)}


@pytest.mark.parametrize("table", [defaults.DOMAINS, defaults.PRESETS])
def test_every_name_in_the_tables_is_known(table):
    for values in table.values():
        assert values.keys() <= OPTIONS | {"algo", "policy", "where"}
        for place in values.get("where", {}).values():
            assert place.keys() <= OPTIONS


@pytest.mark.parametrize("algorithm", ALGORITHMS.values())
def test_every_name_that_an_algorithm_declares_is_known(algorithm):
    assert algorithm.default_policy in POLICIES
    assert algorithm.domain_defaults.keys() <= defaults.DOMAINS.keys()
    for values in (algorithm.defaults, *algorithm.domain_defaults.values(), *algorithm.policy_defaults.values()):
        assert values.keys() <= OPTIONS
    for trait in algorithm.policy_defaults:
        assert all(type(getattr(policy, trait)) is bool for policy in POLICIES.values())


@pytest.mark.parametrize("policy", POLICIES.values())
def test_every_name_that_a_policy_declares_is_known(policy):
    assert policy.defaults.keys() <= OPTIONS


# What an algorithm or a policy declares, against the values that every run so far has had.
DECLARED = {
    ("td3bc", "diffusion"): {},
    ("td3bc", "gaussian"): {"eas": (1, "policy gaussian")},
    ("td3bc", "deterministic"): {
        "eas": (1, "policy deterministic"),
        "target_noise": (0.2, "td3bc with deterministic"),
    },
    ("crr", "diffusion"): {},
    ("bc", "diffusion"): {"eas": (1, "algorithm bc")},
    ("bc", "deterministic"): {"eas": (1, "algorithm bc")},
    ("awr", "diffusion"): {"eas": (1, "algorithm awr")},
    ("cql", "diffusion"): {},
    ("cql", "gaussian"): {
        "eas": (1, "policy gaussian"),
        "bc_weight": (0.0, "cql with gaussian"),
        "squash": (True, "cql with gaussian"),
        "entropy": (0.05, "cql with gaussian"),
    },
    ("dt", "transformer"): {
        "eas": (1, "policy transformer"),
        "lr": (1e-4, "algorithm dt"),
        "clip": (0.25, "algorithm dt"),
        "rewards": ("raw", "algorithm dt"),
    },
    ("awr", "gaussian"): {"eas": (1, "algorithm awr"), "bc_weight": (0.0, "awr with gaussian")},
} | {
    (algorithm, policy): {"eas": (1, f"policy {policy}"), "bc_weight": (0.0, f"{algorithm} with {policy}")}
    for algorithm in ("crr", "iql", "awac", "onestep", "cql")
    for policy in ("gaussian", "deterministic")
    if (algorithm, policy) != ("cql", "gaussian")
}


@pytest.mark.parametrize(("algorithm", "policy"), DECLARED)
def test_what_algorithms_and_policies_change(algorithm, policy):
    origins = {f"policy {policy}", f"algorithm {algorithm}", f"{algorithm} with {policy}"}
    values = resolved(algorithm, policy, "own")
    assert {name: tuple(s) for name, s in values.items() if s.origin in origins} == DECLARED[algorithm, policy]


def test_the_papers_loss_weight_is_for_diffusion_policies():
    assert resolved("td3bc", "diffusion", "kitchen")["loss_weight"] == (0.005, "domain kitchen")
    assert resolved("td3bc", "deterministic", "kitchen")["loss_weight"] == (1.0, "default")


def test_runs_too_short_for_an_average_act_online():
    assert resolved(steps=1000)["act_with"] == ("online", "no average before `policy_target_after`")
    assert resolved(steps=1001)["act_with"] == ("average", "default")
    assert resolved(steps=10, act_with="average")["act_with"] == ("average", "user")


def test_parts_can_be_resolved_without_the_rest():
    """As the benchmark does."""
    layers = defaults.layers("onestep", "diffusion", "locomotion", {}, None)
    assert (
        defaults.resolve((ALGORITHMS["onestep"], POLICIES["diffusion"]), layers, {}).parts[0].evaluation_steps == 50_000
    )
    with pytest.raises(UserError, match="unknown option of this algorithm with this policy 'calls'"):
        defaults.resolve((ALGORITHMS["onestep"],), layers, {"calls": 3})


@pytest.mark.parametrize(
    ("algorithm", "given", "steps"),
    [
        ("td3bc", {}, 7000),  # 4 / (0.02 · (1 - 0.99⁵)) is less
        ("iql", {}, 10_000),
        ("iql", {"n_step": 3}, 10_101),  # 6 / (0.02 · (1 - 0.99³))
        ("iql", {"tau": 0.005, "n_step": 1}, 120_000),
        ("td3bc", {"discount": 1.0, "n_step": 1, "tau": 0.02}, 200_000),  # as with 0.999
        ("td3bc", {"policy_every": 2}, 8162),  # targets move at every second step only
        ("rebrac", {}, 7000),
        ("td3bc", {"tau": 0.0}, 0),
        ("td3bc", {"eas_after": 5}, 5),
        ("bc", {}, 0),
    ],
)
def test_eas_waits_until_the_values_have_settled(algorithm, given, steps):
    assert choose(algorithm, options=given).resolve(get_task("hopper-medium-v2")).values["eas_after"].value == steps


def test_the_papers_eas_does_not_wait():
    assert resolved(preset="edp")["eas_after"].value == 0


def test_the_recipe_has_other_values_for_few_rows():
    task = get_task("hopper-medium-v2")
    many, few = (choose("td3bc").resolve(task).for_data(rows, 1.0, 1.0).values for rows in (20_000, 19_999))
    assert (many["eas"].value, many["loss_weight"].value) == (10, 0.5)
    assert (few["eas"].value, few["loss_weight"].value) == (1, 0.1)
    assert few["eas"].origin == "preset quick, for fewer than 20,000 rows"
    assert choose("crr").resolve(task).for_data(19_999, 1.0, 1.0).values["beta"].value == 5.0
    asked = choose("td3bc", options={"eas": 4}).resolve(task).for_data(10, 1.0, 1.0).values
    assert (asked["eas"].value, asked["loss_weight"].value) == (4, 0.1)
    paper = choose("td3bc", preset="edp").resolve(task).for_data(10, 0.0, 0.0).values
    assert (paper["eas"].value, paper["loss_weight"].value) == (10, 1.0)


def test_the_recipe_has_these_values_for_smooth_actions():
    settings = choose("td3bc").resolve(get_task("hopper-medium-v2"))
    smooth = settings.for_data(1_000_000, 0.19, 1.0).values
    assert (smooth["eas"].value, smooth["loss_weight"].value) == (1, 0.1)
    assert smooth["eas"].origin == "preset quick, for smooth actions"
    assert smooth["initial_noise"] == (0.0, "preset quick, for smooth actions")
    assert settings.for_data(10, 0.2, 1.0).values["initial_noise"].value == 1.0  # few rows alone
    selects = choose("td3bc", options={"eas": 10}).resolve(get_task("hopper-medium-v2"))
    assert selects.for_data(10, 0.1, 1.0).values["initial_noise"].value == 1.0
    cloned = choose("bc").resolve(get_task("hopper-medium-v2")).for_data(10, 0.1, 1.0)
    assert cloned.values["initial_noise"].value == 0.0
    assert settings.for_data(1_000_000, 0.2, 1.0) == settings


def test_the_recipe_does_not_select_actions_where_rewards_are_sparse():
    settings = choose("td3bc").resolve(get_task("antmaze-umaze-v0"))
    sparse = settings.for_data(1_000_000, 1.0, 0.09).values
    assert (sparse["eas"].value, sparse["loss_weight"].value) == (1, 0.5)
    assert sparse["eas"].origin == "preset quick, for sparse rewards"
    assert settings.for_data(1_000_000, 1.0, 0.1) == settings
    both = settings.for_data(1_000_000, 0.1, 0.0).values
    assert (both["eas"].value, both["loss_weight"].value) == (1, 0.1)
    asked = choose("td3bc", options={"eas": 4}).resolve(get_task("antmaze-umaze-v0"))
    assert asked.for_data(1_000_000, 1.0, 0.0).values["eas"].value == 4
