"""The contract beside an exported policy: what goes in, what comes out, and how it was checked."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import edp
from edp.acting.guard import MARGIN
from edp.acting.policy import LoadedPolicy
from edp.data.signals import Signals
from edp.exporting.check import LIMIT, Comparison
from edp.exporting.plan import Input, Plan, model_of
from edp.exporting.signals import control_period
from edp.policies import Diffusion, Flow, Transformer
from edp.runs.checkpoints import arrays_digest, leaves_by_name

Contract = dict[str, Any]


def describe_policy(loaded: LoadedPolicy, plan: Plan, signals: Signals) -> Contract:
    """What is known before the policy is written."""
    policy, critic, _ = model_of(loaded)
    algorithm, kind = loaded.spec.names
    options, choice, origin = loaded.options, plan.choice, loaded.origin
    shift, scale, _, _, low, high = plan.units.arrays
    observed = (signals.low, signals.high) if signals.low else ([None] * len(shift),) * 2
    observations = zip(signals.observations, *map(plain, observed), plain(shift), plain(scale), strict=True)
    return {
        "version": edp.__version__,
        "run": origin and origin.run.folder.resolve().name,
        "seed": origin and origin.seed,
        "step": origin and origin.step,
        "task": loaded.spec.task.name,
        "algorithm": algorithm,
        "policy": kind,
        "sampler": asdict(policy.sampler) if isinstance(policy, Diffusion | Flow) else None,
        "history": {"context": policy.context, "target_return": policy.target * policy.scale}
        if isinstance(policy, Transformer)
        else None,
        "policy_scale": options.policy_scale,
        "initial_noise": options.initial_noise,
        "eas": {"candidates": choice.candidates, "temperature": choice.temperature, "energy": choice.energy}
        | {"critics": len(choice.critics), "spread": choice.spread}
        if choice
        else None,
        "parameters_sha256": arrays_digest(leaves_by_name({"policy": policy, "critic": critic if choice else None})),
        "seconds_between_actions": control_period(loaded),
        "control": {"outside": loaded.outside, "margin": MARGIN, **loaded.limits.to_json()},
        "observations": [
            dict(zip(("name", "low", "high", "shift", "scale"), each, strict=True)) for each in observations
        ],
        "actions": [
            {"name": name, "low": a, "high": b}
            for name, a, b in zip(signals.actions, plain(low), plain(high), strict=True)
        ],
    }


def describe_inputs(inputs: list[Input], act: int, batch: bool = True) -> Contract:
    """Inputs and output. Without ``batch``, their shapes are those of one state."""
    sizes = lambda shape: [side for side in shape if batch or side != "batch"]  # noqa: E731
    output = Input("action", "float32", ("batch", act), "in the units of the data, within their ranges")
    both = {"inputs": inputs, "outputs": [output]}
    return {side: [each._asdict() | {"shape": sizes(each.shape)} for each in these] for side, these in both.items()}


def describe_check(found: Comparison, observations: str) -> Contract:
    """``greatest_difference`` is a share of the action's range."""
    return {
        "states": found.states,
        "observations": observations,
        "greatest_difference": float(f"{found.greatest_difference:.3g}"),
        "limit": LIMIT,
        "other_choices": found.ties,
    }


def example(inputs: list[Input], numbers: dict[str, np.ndarray], actions: np.ndarray, batch: bool = True) -> Contract:
    """The inputs of the first state, and its action."""
    whole = {given.name: numbers[given.name] for given in inputs} | {"action": actions}
    return {name: plain(array[:1] if batch else array[0]) for name, array in whole.items()}


def plain(array: Any) -> Any:
    """Numbers for JSON: those of float32 with as few digits as they need."""
    array = np.asarray(array)
    if array.dtype.kind == "O":
        return array.tolist()
    if array.ndim:
        return [plain(row) for row in array]
    return float(str(array.astype(np.float32))) if array.dtype.kind == "f" else array.item()


def as_text(contract: Contract) -> str:
    """A contract as JSON, with a line for each entry, and for each entry of lists and objects in it."""
    return "{\n" + ",\n".join(f"  {json.dumps(name)}: {in_lines(entry)}" for name, entry in contract.items()) + "\n}\n"


def in_lines(entry: Any) -> str:
    if isinstance(entry, dict):
        inner = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in entry.items()]
    elif isinstance(entry, list):
        inner = [json.dumps(value) for value in entry]
    else:
        return json.dumps(entry)
    first, last = "{}" if isinstance(entry, dict) else "[]"
    return f"{first}\n    " + ",\n    ".join(inner) + f"\n  {last}"


def metadata(contract: Contract) -> dict[str, str]:
    """The entries of a contract as texts, for a model file."""
    return {f"edp.{name}": entry if isinstance(entry, str) else json.dumps(entry) for name, entry in contract.items()}


def contract_path(path: Path) -> Path:
    return path.with_suffix(".json")


def file_of(path: Path) -> str:
    """The name of the file that a contract belongs to; empty if it is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return content["file"] if isinstance(content["parameters_sha256"], str) else ""
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return ""
