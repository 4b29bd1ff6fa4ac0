"""edp export RUN FILE"""

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
    values = parser.parse(argv)
    acting = {name: value for name in ACTING if (value := getattr(values, name)) is not None}
    options = {name: getattr(values, name) for name in ("format", "random", "random_seed", "overwrite", "seed")}
    with warnings.catch_warnings(record=True) as caught:
        done = export(values.run, values.file, checkpoint=values.checkpoint, **options, **acting)
    for warning in caught:
        note(str(warning.message))
    for name, text in describe(done):
        print(printable(f"{name:<12}{text}"))
    return 0


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
        ("compared", f"with JAX in {check['states']} states {check['observations']}{other}"),
        ("", f"greatest difference: {check['greatest_difference']:.1e} of the action's range"),
    ]


def sampling(about: Any) -> str:
    sampler, eas = about["sampler"], about["eas"]
    calls = f"; {sampler['name']}, {sampler['calls']} calls" if sampler else ""
    return calls + (f"; EAS of {eas['candidates']}, temperature {eas['temperature']:g}" if eas else "")


def size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"
