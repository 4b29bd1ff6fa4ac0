"""edp export RUN FILE"""

import argparse
import warnings
from pathlib import Path
from typing import Any

from edp.cli.parser import Parser, add_overwrite
from edp.errors import printable

DESCRIPTION = """Write the policy of a run to a file that runs without this package and without JAX: an ONNX model
(.onnx), a C99 file without dependencies (.c), or StableHLO for programs with JAX (.stablehlo). Observations and actions
are in the units of the data. The file is compared with the policy before it is written, and its contract is written
beside it (.json): inputs, outputs, names, ranges and an example."""
ACTING = (
    *("eas", "eas_energy", "eas_temperature", "eas_spread", "policy_scale", "initial_noise"),
    *("act_with", "act_sampler", "act_calls"),
)


CONTROL = ("outside", "max_change", "deadline_ms", "fallback")


def main(argv: list[str]) -> int:
    from edp.cli.progress import note
    from edp.config.spec import EvalOptions
    from edp.exporting.export import FORMATS, RANDOM, export

    parser = Parser("edp export", DESCRIPTION, "RUN FILE")
    parser.add_argument("run", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument("file", type=Path, metavar="FILE", help=f"the file to write ({', '.join(FORMATS.values())})")
    parser.add_argument("--format", metavar="…", help=f"{', '.join(FORMATS)} (default: by the suffix of FILE)")
    add_overwrite(parser)
    parser.add_argument("--seed", type=int, metavar="…", help="one of the run's seeds (default: the first)")
    parser.add_argument("--checkpoint", metavar="…", help="a step, best or offline (default: the last one)")
    parser.add_argument(
        "--random",
        default="input",
        metavar="…",
        help=f"random numbers of an ONNX model: {', '.join(RANDOM)} (default: input; inside draws them in the model)",
    )
    parser.add_argument(
        "--random-seed", type=int, metavar="…", help="the seed of random numbers that are drawn inside (default: none)"
    )
    parser.add_fields(EvalOptions, "acting (defaults: those of the run)", ACTING)
    add_control(parser)
    values = parser.parse(argv)
    acting = {name: value for name in (*ACTING, *CONTROL) if (value := getattr(values, name)) is not None}
    options = {name: getattr(values, name) for name in ("format", "random", "random_seed", "overwrite", "seed")}
    with warnings.catch_warnings(record=True) as caught:
        done = export(values.run, values.file, checkpoint=values.checkpoint, **options, **acting)
    for warning in caught:
        note(str(warning.message))
    for name, text in describe(done):
        print(printable(f"{name:<12}{text}"))
    return 0


def add_control(parser: Parser) -> None:
    from edp.acting.guard import CHOICES

    group = parser.add_argument_group("the control loop around the policy (written into the contract)")
    group.add_argument(
        "--outside",
        metavar="…",
        help=f"observations outside of the training data: {', '.join(CHOICES)} (default: warn)",
    )
    group.add_argument(
        "--max-change",
        type=by_action,
        metavar="…",
        help="greatest change of an action from one call to the next: 5; 5,10; or valve=5,pump=10 (default: none)",
    )
    group.add_argument(
        "--deadline-ms", type=float, metavar="…", help="milliseconds after which the fallback is used (default: none)"
    )
    group.add_argument(
        "--fallback", type=by_action, metavar="…", help="hold, or an action: 0,50 or valve=0,pump=50 (default: hold)"
    )


def by_action(text: str) -> Any:
    """A number, numbers in the order of the actions, numbers by name, or a word."""
    parts = [part.strip() for part in text.split(",")]
    try:
        if "=" in text:
            pairs = [part.rsplit("=", 1) for part in parts]
            return {name.strip(): float(number) for name, number in pairs}
        numbers = [float(part) for part in parts]
    except ValueError:
        if len(parts) == 1 and "=" not in text:
            return text
        raise argparse.ArgumentTypeError(f"{text!r} is neither numbers (5,10) nor numbers by name (a=5,b=10)") from None
    return numbers if len(numbers) > 1 else numbers[0]


def describe(done: Any) -> list[tuple[str, str]]:
    """What was written, line by line."""
    about, check = done.contract, done.contract["check"]
    shapes = lambda side: ", ".join(f"{each['name']} ({', '.join(map(str, each['shape']))})" for each in about[side])  # noqa: E731
    other = f"; another of equal candidates in {check['other_choices']} of them" if check["other_choices"] else ""
    return [
        ("written", f"{done.path} ({size(done.size)}) and its contract, {done.contract_path}"),
        (
            "policy",
            f"{about['policy']} of {about['run']}, seed {about['seed']}, step {about['step']:,}{sampling(about)}",
        ),
        ("inputs", shapes("inputs")),
        ("output", shapes("outputs")),
        *([("control", control(about["control"]))] if control(about["control"]) else []),
        ("compared", f"with JAX in {check['states']} states {check['observations']}{other}"),
        ("", f"greatest difference: {check['greatest_difference']:.1e} of the action's range"),
    ]


def sampling(about: Any) -> str:
    sampler, eas = about["sampler"], about["eas"]
    calls = f"; {sampler['name']}, {sampler['calls']} calls" if sampler else ""
    return calls + (f"; EAS of {eas['candidates']}, temperature {eas['temperature']:g}" if eas else "")


def control(wanted: Any) -> str:
    """What the contract asks of the control loop, if that was given."""
    shown = lambda numbers: ", ".join("any" if number is None else f"{number:g}" for number in numbers)  # noqa: E731
    parts = [f"outside of the training data: {wanted['outside']}"] if wanted["outside"] != "warn" else []
    if wanted["max_change"]:
        parts.append(f"changes of at most {shown(wanted['max_change'])}")
    if wanted["deadline_ms"]:
        fallback = "the last action" if wanted["fallback"] == "hold" else shown(wanted["fallback"])
        parts.append(f"after {wanted['deadline_ms']:g} ms: {fallback}")
    return "; ".join(parts)


def size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"
