"""Write a trained policy to a file that runs elsewhere, after comparing it with the JAX policy."""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from edp.acting.load import load_policy
from edp.acting.policy import LoadedPolicy
from edp.data.signals import Signals
from edp.errors import UserError, unknown
from edp.exporting import contract as contracts
from edp.exporting.check import (
    Reference,
    compare,
    reference_actions,
    reference_histories,
    refuse_difference,
)
from edp.exporting.observations import choose_observations, open_data
from edp.exporting.plan import Chain, Plan, make_plan
from edp.exporting.signals import read_signals
from edp.files import check_writable, refuse_existing, replacing
from edp.policies import Transformer

FORMATS = {"onnx": ".onnx", "stablehlo": ".stablehlo", "c": ".c"}
RANDOM = ("input", "inside")
MOST_STATES, FEWEST_STATES, WORK = 256, 16, 40_000  # states that are compared; fewer if each needs many network calls


class Exported(NamedTuple):
    """An exported policy."""

    path: Path
    contract_path: Path
    contract: dict[str, Any]  # the content of ``contract_path``
    size: int  # bytes of the file


class Job(NamedTuple):
    """What the writer of a format gets."""

    loaded: LoadedPolicy
    plan: Plan
    signals: Signals
    path: Path
    about: contracts.Contract
    reference: Reference
    observations: str  # where the reference's come from
    random: str
    random_seed: int | None


class Written(NamedTuple):
    """The content of a file, and what its contract says about it."""

    content: bytes
    entries: contracts.Contract


def export(
    policy: LoadedPolicy | str | Path,
    path: str | Path,
    *,
    format: str | None = None,
    random: str = "input",
    random_seed: int | None = None,
    overwrite: bool = False,
    seed: int | None = None,
    checkpoint: int | str | None = None,
    **acting: Any,
) -> Exported:
    """Write a policy to a file that needs neither this package nor JAX, and its contract beside it (``.json``).

    The file is compared with the JAX policy on observations of the data before it is written. It is refused if an
    action differs by more than 1e-4 of its range.

    Args:
        policy: a run directory, or a policy from ``load_policy`` or ``fit``.
        path: the file to write.
        format: "onnx", "c" or "stablehlo" (default: by the file's suffix).
        random: where random numbers come from in an ONNX model: "input", or drawn "inside".
        random_seed: makes the numbers that are drawn inside the same each time that the model is loaded.
        overwrite: replace files that exist.
        seed: as in ``load_policy``, as all of the following.
        checkpoint: the checkpoint.
        **acting: options of acting, such as ``eas=50`` or ``act_calls=6``. ``outside``, ``max_change``, ``deadline_ms``
            and ``fallback`` do not change the actions of the file: they are written into the contract, as ``control``,
            for the program around it.
    """
    path, contract_path = Path(path), contracts.contract_path(Path(path))
    writer = find_writer(path, format)
    if random not in RANDOM:
        raise unknown("choice of `random`", random, RANDOM)
    if (random == "inside" or random_seed is not None) and writer is not WRITERS["onnx"]:
        raise UserError("`random` and `random_seed` are for the format onnx only")
    refuse_other_contract(path)
    for target in (path, contract_path):
        if not target.is_dir():
            refuse_existing(target, overwrite)  # before the run is loaded
    if isinstance(policy, LoadedPolicy):
        if seed is not None or checkpoint is not None or acting:
            raise UserError("a loaded policy is exported as it acts: give options of acting to load_policy")
        loaded = policy
    else:
        loaded = load_policy(policy, seed=seed, checkpoint=checkpoint, **acting)
    plan = make_plan(loaded)
    for target in (path, contract_path):
        check_writable(target, overwrite, [loaded.origin.run.folder] if loaded.origin else ())
    job = prepare_job(loaded, plan, path, random, random_seed)
    written = writer(job)
    about = {"file": path.name, "sha256": hashlib.sha256(written.content).hexdigest(), **job.about, **written.entries}
    with replacing(path) as model, replacing(contract_path) as text:
        model.write_bytes(written.content)
        text.write_text(contracts.as_text(about), encoding="utf-8")
    return Exported(path, contract_path, about, len(written.content))


def find_writer(path: Path, format: str | None) -> Any:
    if format is None:
        format = next((name for name, suffix in FORMATS.items() if path.suffix.lower() == suffix), None)
        if format is None:
            known = ", ".join(FORMATS.values())
            raise UserError(f"{path}: its suffix names no format (use {known}, or give the format with `format`)")
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    if path == contracts.contract_path(path):
        raise UserError(f"{path}: the policy's contract has the suffix .json; give the policy another one")
    return WRITERS[format]


def refuse_other_contract(path: Path) -> None:
    """Refuse to replace the contract of another exported policy, such as policy.json of policy.onnx by policy.c's."""
    contract = contracts.contract_path(path)
    other = contracts.file_of(contract)
    if other and other != path.name and (path.parent / other).exists():
        raise UserError(f"{contract}: is the contract of {other}; give {path.name} another name")


def prepare_job(loaded: LoadedPolicy, plan: Plan, path: Path, random: str, random_seed: int | None) -> Job:
    """The policy with what it does in JAX on observations of the data."""
    log = open_data(loaded)
    signals = read_signals(loaded, log)
    calls = len(plan.policy.calls) if isinstance(plan.policy, Chain) else 1
    count = min(MOST_STATES, max(FEWEST_STATES, WORK // (calls * plan.candidates)))
    obs, source = choose_observations(loaded, log, signals, count)
    make_reference = reference_histories if isinstance(plan.policy, Transformer) else reference_actions
    reference = make_reference(loaded, plan, obs, jax.random.key(0))
    about = contracts.describe_policy(loaded, plan, signals)
    return Job(loaded, plan, signals, path, about, reference, source, random, random_seed)


def write_onnx_file(job: Job) -> Written:
    from edp.exporting.onnx_writer import write_onnx

    plan, act = job.plan, job.plan.units.dims[1]
    model = write_onnx(plan)
    check = checked(job, run_onnx(model.SerializeToString(), job.reference.inputs))
    draws_inside = job.random == "inside" and len(plan.inputs) > 1 and not isinstance(plan.policy, Transformer)
    inputs = plan.inputs[:1] if draws_inside else plan.inputs
    if draws_inside:
        model = write_onnx(plan, "inside", job.random_seed)
    entries = contracts.describe_inputs(inputs, act) | {"format": "onnx", "random": job.random, "check": check}
    for name, text in contracts.metadata(job.about | entries).items():
        model.metadata_props.add(key=name, value=text)
    content = model.SerializeToString()
    first = {given.name: job.reference.inputs[given.name][:1] for given in inputs}
    action = run_onnx(content, first)  # the file itself
    if draws_inside:
        refuse_outside(action, plan)
        return Written(content, entries | {"example": None})
    return Written(content, entries | {"example": contracts.example(inputs, first, action)})


def run_onnx(content: bytes, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """The actions of a model in onnxruntime."""
    try:
        import onnxruntime
    except ImportError:
        raise UserError("needs the packages onnx and onnxruntime: pip install 'edp-rl[onnx]'") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return np.asarray(onnxruntime.InferenceSession(content, options).run(None, inputs)[0])


def refuse_outside(action: np.ndarray, plan: Plan) -> None:
    """Refuse actions that are not within their ranges. Random ones cannot be compared."""
    *_, low, high = plan.units.arrays
    if action.shape != (1, len(low)) or not ((action >= low) & (action <= high)).all():
        raise UserError("the exported policy's actions are not within their ranges: nothing was written")


def write_c_file(job: Job) -> Written:
    from edp.exporting.c_writer import Compiled, write_c

    plan = job.plan
    control = job.loaded.outside, job.loaded.limits
    text = write_c(plan, job.path.name, job.signals, title_of(job.about), *control)
    with Compiled(text, job.path.name, plan) as compiled:
        actions = compiled(job.reference.inputs)
    check = checked(job, actions)
    entries = {"format": "c", **contracts.describe_inputs(plan.inputs, plan.units.dims[1], batch=False), "check": check}
    example = contracts.example(plan.inputs, job.reference.inputs, actions, batch=False)
    return Written(text.encode("ascii"), entries | {"example": example})


def write_stablehlo_file(job: Job) -> Written:
    from jax import export as jax_export

    from edp.exporting.stablehlo import stablehlo_inputs, write_stablehlo

    content, version = write_stablehlo(job.loaded, job.plan)
    inputs = stablehlo_inputs(job.plan)
    numbers = job.reference.inputs | {"key": job.reference.keys}
    arrays = {given.name: numbers[given.name].astype(given.type) for given in inputs}
    actions = np.asarray(jax_export.deserialize(bytearray(content)).call(*arrays.values()))
    entries = {"format": "stablehlo", "calling_convention_version": version}
    entries |= contracts.describe_inputs(inputs, job.plan.units.dims[1]) | {"check": checked(job, actions)}
    return Written(content, entries | {"example": contracts.example(inputs, arrays, actions)})


WRITERS = {"onnx": write_onnx_file, "stablehlo": write_stablehlo_file, "c": write_c_file}


def checked(job: Job, actions: np.ndarray) -> contracts.Contract:
    """The result of the comparison, for the contract. Refuses actions that differ."""
    policy = job.plan.policy
    amplifies = isinstance(policy, Chain) and not policy.predicts_data
    advice = (
        " (few calls may amplify rounding errors: try more `act_calls`, or `act_sampler=dpm++`)" if amplifies else ""
    )
    found = refuse_difference(compare(actions, job.reference, job.plan.units), advice)
    return contracts.describe_check(found, job.observations)


def title_of(about: contracts.Contract) -> str:
    where = f" of {about['run']} (seed {about['seed']}, step {about['step']:,})" if about["run"] else ""
    return f"The {about['policy']} policy{where}, trained by {about['algorithm']} on {about['task']}"
