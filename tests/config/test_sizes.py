"""Impossible sizes are refused by arithmetic, before anything is allocated or compiled."""

from dataclasses import replace

import pytest

from edp import memory
from edp.algorithms import ALGORITHMS
from edp.config import sizes
from edp.config.choice import choose
from edp.config.spec import acting_sampler
from edp.data.tasks import get_task
from edp.errors import UserError
from edp.policies import POLICIES
from edp.training import prepare

GIGABYTE = 10**9
IMPOSSIBLE = {
    "batch_size": ({"batch_size": 999_999_999}, "td3bc"),
    "hidden": ({"hidden": (65_536, 65_536, 65_536)}, "td3bc"),
    "hidden of a Gaussian": ({"hidden": (65_536, 65_536)}, "bc"),
    "critic_hidden": ({"critic_hidden": (65_536, 65_536)}, "iql"),
    "critics": ({"critics": 1000, "critic_hidden": (16_000, 16_000)}, "td3bc"),
    "eas": ({"eas": 2_000_000_000}, "td3bc"),
    "diffusion_steps": ({"diffusion_steps": 2_000_000_000}, "td3bc"),
    "samples": ({"samples": 2_000_000_000}, "crr"),
    "samples of CQL": ({"samples": 2_000_000_000}, "cql"),
    "max_q_backup": ({"max_q_backup": 2_000_000_000}, "td3bc"),
    "seeds": ({"seeds": 10_000, "hidden": (2048, 2048, 2048)}, "td3bc"),
    "epoch_steps": ({"epoch_steps": 2_000_000_000, "steps": 2_000_000_000}, "td3bc"),
    "context": ({"context": 2_000_000_000}, "dt"),
    "width": ({"width": 65_536, "layers": 1000}, "dt"),
}


@pytest.mark.parametrize("which", IMPOSSIBLE)
def test_impossible_sizes_are_refused(which, monkeypatch):
    monkeypatch.setattr(sizes, "total_memory", lambda: 8 * GIGABYTE)
    options, algorithm = IMPOSSIBLE[which]
    with pytest.raises(UserError, match=f"`{which.split()[0]}=.*: .* would need at least .* this machine has 8 GB"):
        prepare.resolve_settings(choose(algorithm, options=options), get_task("hopper-medium-v2"))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_defaults_fit_into_a_small_machine(algorithm, monkeypatch):
    monkeypatch.setattr(sizes, "total_memory", lambda: GIGABYTE)
    assert prepare.resolve_settings(choose(algorithm), get_task("hopper-medium-v2"))


def test_acting_and_the_command_line_refuse_them_too(fails):
    algorithm, policy, _, _, evaluation = prepare.resolve_settings(choose(), get_task("hopper-medium-v2")).parts
    with pytest.raises(UserError, match="`eas=2000000000`: choosing an action would need at least"):
        acting_sampler(algorithm, policy, replace(evaluation, eas=2_000_000_000))
    assert policy.__class__ in POLICIES.values()
    text = fails("train", "hopper-medium-v2", "--batch-size", "999999999", "--hidden", "4096,4096")
    assert text.startswith("edp: --batch-size 999999999: a batch would need at least 16.4 TB of memory")


def test_sizes_as_text():
    assert [memory.show_size(size) for size in (999, 10**6, 25_300_000_000, 10**16)] == [
        "999 bytes",
        "1 MB",
        "25.3 GB",
        "10 PB",
    ]
    assert [memory.parse_size(text) for text in ("100", "1.5GB", "4 gib", "2k")] == [100, 1.5e9, 4e9, 2000]
    for wrong in ("", "GB", "-1", "0", "1e400", "nan", "٣"):
        with pytest.raises(UserError, match="must be a size"):
            memory.parse_size(wrong)


def test_free_memory_is_at_most_that_of_the_machine_and_of_the_container(tmp_path, monkeypatch):
    assert 0 < memory.free_memory() <= memory.total_memory()
    (tmp_path / "memory.max").write_text("5000\n")
    monkeypatch.setattr(memory, "CONTROL_GROUP", tmp_path / "memory.max")
    assert memory.free_memory() == memory.total_memory() == 5000
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.total_memory() > 10**6


@pytest.mark.parametrize(
    "options", [{"calls": 10**9}, {"act_calls": 10**9}, {"calls": 0, "diffusion_steps": 10**7}], ids=str
)
def test_a_sampler_has_a_limited_number_of_calls(options):
    with pytest.raises(UserError, match="a sampler makes at most 100,000 network calls, not 1"):
        prepare.resolve_settings(choose("td3bc", options=options), get_task("hopper-medium-v2"))
