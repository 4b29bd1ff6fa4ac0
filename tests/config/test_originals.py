"""Presets of the baselines with their own published settings."""

import pytest

from edp.config import defaults
from edp.config.choice import choose
from edp.config.originals import ORIGINALS
from edp.config.spec import check_together
from edp.config.successors import SUCCESSORS
from edp.data import tasks
from edp.errors import UserError

PUBLISHED = ORIGINALS | SUCCESSORS


def resolved(preset, task="hopper-medium-v2", **given):
    return choose(preset=preset, options=given).resolve(tasks.get_task(task))


@pytest.mark.parametrize("task", ["hopper-medium-v2", "antmaze-umaze-v0", "pen-cloned-v1", "kitchen-complete-v0"])
@pytest.mark.parametrize("preset", PUBLISHED)
def test_every_original_can_be_followed_on_every_domain(preset, task):
    settings = resolved(preset, task)
    algorithm, policy, data, _, evaluation = settings.parts
    check_together(algorithm, policy, data, evaluation)
    for name in PUBLISHED[preset].keys() - {"algo", "policy", "where"}:
        assert settings.values[name].origin.startswith(f"preset {preset}")


def test_a_preset_names_the_policy():
    assert defaults.choose_names(None, None, "iql-original") == ("iql", "gaussian")
    assert defaults.choose_names(None, None, "td3bc-original") == ("td3bc", "deterministic")
    assert defaults.choose_names(None, "gaussian", "bc-original") == ("bc", "gaussian")
    with pytest.raises(UserError, match="preset td3bc-original sets `alpha`"):
        choose("iql", None, "td3bc-original").resolve(tasks.get_task("hopper-medium-v2"))


@pytest.mark.parametrize(
    ("task", "temperature", "origin", "dropout", "rewards"),
    [
        ("hopper-medium-v2", 3.0, "preset iql-original", 0.0, "return-range"),
        ("antmaze-umaze-v0", 10.0, "preset iql-original on antmaze", 0.0, "minus-one"),
        ("kitchen-complete-v0", 0.5, "preset iql-original on kitchen", 0.1, "raw"),
        ("pen-cloned-v1", 0.5, "preset iql-original on adroit", 0.1, "raw"),
    ],
)
def test_values_by_domain(task, temperature, origin, dropout, rewards):
    values = resolved("iql-original", task).values
    assert values["temperature"] == (temperature, origin)
    assert (values["dropout"].value, values["rewards"].value) == (dropout, rewards)
    assert resolved("iql-original", task, temperature=1.0).values["temperature"] == (1.0, "user")


@pytest.mark.parametrize(("task", "target"), [("hopper-medium-v2", 3600.0), ("halfcheetah-medium-v2", 12_000.0)])
def test_values_by_the_first_word_of_the_task(task, target):
    values = resolved("dt-original", task).values
    assert values["target_return"] == (target, f"preset dt-original on {task.partition('-')[0]}")
    assert values["return_scale"] == (1000.0, "preset dt-original on locomotion")


@pytest.mark.parametrize(
    ("task", "actor", "critic"),
    [("hopper-medium-v2", 0.01, 0.01), ("hopper-medium-expert-v2", 0.1, 0.01), ("pen-cloned-v1", 0.05, 0.5)],
)
def test_values_by_the_name_of_the_task_without_its_version(task, actor, critic):
    values, origin = resolved("rebrac-original", task).values, f"preset rebrac-original on {task[:-3]}"
    assert values["actor_penalty"] == (actor, origin)
    assert values["critic_penalty"] == (critic, origin)


def test_names_without_versions():
    names = {"hopper-medium-v2": "hopper-medium", "local/hopper-medium": "hopper-medium", "oven-vi": "oven-vi"}
    assert {name: defaults.name_without_version(name) for name in names} == names


def test_values_that_follow_the_number_of_steps():
    assert resolved("onestep-original").values["evaluation_steps"] == (2_000_000, "preset onestep-original")
    assert resolved("onestep-original", steps=21).values["evaluation_steps"].value == 20
    assert resolved("iql-original", steps=500).values["lr_decay"] == (500, "preset iql-original")


def test_no_part_of_the_recipe_is_in_them():
    assert not [name for name, origin in resolved("td3bc-original").origins.items() if "quick" in origin]


@pytest.mark.parametrize(
    ("task", "values"),
    [
        ("walker2d-medium-replay-v2", {"rho": 1.0, "bc_limit": 1.0, "eta": 1.0, "eta_lr": 1e-3, "max_q_backup": 0}),
        ("hopper-medium-v2", {"rho": 1.5, "bc_limit": 1.0, "rewards": "return-range"}),
        ("hopper-medium-expert-v2", {"rho": 1.5, "bc_limit": 0.05}),
        ("halfcheetah-medium-expert-v2", {"rho": 0.0, "bc_limit": 0.1}),
        ("antmaze-umaze-v0", {"rho": 1.0, "eta": 0.1, "eta_lr": 0.0, "max_q_backup": 10, "lr": 3e-4}),
        ("antmaze-large-play-v0", {"rho": 1.1, "eta": 0.1, "lr": 1e-3, "policy_lr": 3e-4}),
    ],
)
def test_dac_by_task(task, values):
    settings = resolved("dac", task).values
    assert {name: settings[name].value for name in values} == values
    assert (settings["lr_decay"].value, settings["clip"].value) == (2_000_000, 1.0)
