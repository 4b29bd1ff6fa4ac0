"""Policies as a single C99 file, from the template ``policy.c.jinja``."""

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

import edp
from edp.acting.guard import CHOICES, ranges_with_margin
from edp.acting.limits import Limits
from edp.data.signals import Signals
from edp.errors import UserError
from edp.exporting.plan import NORM_EPSILON, Chain, Direct, Layers, Plan
from edp.policies import Transformer

COMPILE = ("-std=c99", "-O2", "-shared", "-fPIC")
IN_LINE = 8  # numbers
LONGEST = 600  # seconds of a compiler
NO_LIMITS = Limits()


def write_c(
    plan: Plan, file: str, signals: Signals, title: str, outside: str = "warn", limits: Limits = NO_LIMITS
) -> str:
    """The text of a C file that is to be named ``file``."""
    policy, choice = plan.policy, plan.choice
    if isinstance(policy, Transformer):
        raise UserError("a policy that reads histories has no exporter to C: use the format onnx")
    name = identifier(file)
    nets = [network("policy", policy.net)]
    kinds = [{"name": "policy", "activation": policy.net.activation, "norm": policy.net.norm}]
    if choice:
        nets += [network(f"critic_{i}", critic) for i, critic in enumerate(choice.critics)]
        first = choice.critics[0]
        kinds.append({"name": "critic", "activation": first.activation, "norm": first.norm})
    widths = [layer["outputs"] for net in nets for layer in net["layers"][:-1]]
    shift, scale, centre, half, low, high = map(numbers, plan.units.arrays)
    observed = (signals.low, signals.high) if signals.low else None
    return template().render(
        {
            **{"title": comment(title), "version": edp.__version__, "file": comment(file)},
            **{"name": name, "NAME": name.upper(), "obs": plan.units.dims[0], "act": plan.units.dims[1]},
            **{"obs_names": texts(signals.observations), "act_names": texts(signals.actions)},
            "obs_range": observed and tuple(numbers(np.array(side, np.float32)) for side in observed),
            **{"shift": shift, "scale": scale, "centre": centre, "half": half, "low": low, "high": high},
            **{"candidates": plan.candidates, "draws": plan.draws, "gumbel": plan.candidates if plan.gumbel else 0},
            "noise": plan.candidates * plan.draws * plan.units.dims[1],
            **{"nets": nets, "kinds": kinds, "widest": max(widths), "epsilon": number(NORM_EPSILON)},
            "activations": {kind["activation"] for kind in kinds},
            "norm": any(kind["norm"] for kind in kinds),
            **(chain_values(policy) if isinstance(policy, Chain) else direct_values(policy)),
            **{"choice": choice, "relative": choice and choice.energy == "relative"},
            "temperature": choice and choice.temperature and number(choice.temperature),
            "spread": choice and choice.spread and number(choice.spread),
            **control_values(signals, outside, limits),
        }
    )


def control_values(signals: Signals, outside: str, limits: Limits) -> dict[str, Any]:
    allowed = signals.low and [*map(numbers, ranges_with_margin(signals))]
    change = limits.max_change and numbers(np.minimum(limits.max_change, np.finfo(np.float32).max))
    fallback = numbers(np.array(limits.fallback)) if isinstance(limits.fallback, tuple) else None
    return {
        **{"outside": outside.upper(), "choices": [each.upper() for each in CHOICES], "allowed": allowed},
        **{"max_change": change, "deadline": number(limits.deadline_ms or 0), "fallback": fallback},
    }


def chain_values(chain: Chain) -> dict[str, Any]:
    rows = [", ".join([*map(number, call[1:9]), str(int(call.keep)), str(int(call.advance))]) for call in chain.calls]
    return {
        **{"chain": True, "calls": rows, "times": numbers(np.stack([call.time for call in chain.calls]))},
        **{"predicts_data": chain.predicts_data, "clips": chain.clip},
        **{"start": chain.start and number(chain.start), "noisy": any(call.noise for call in chain.calls)},
    }


def direct_values(direct: Direct) -> dict[str, Any]:
    std = direct.log_std is not None and numbers(np.exp(direct.log_std) * np.float32(direct.factor))
    return {
        **{"chain": False, "outputs": direct.net.biases[-1].size, "squash": direct.squash, "std": std},
        **{"factor": direct.factor and number(direct.factor), "limits": [*map(number, direct.limits)]},
    }


def network(name: str, net: Layers) -> dict[str, Any]:
    """The values of a network in the template."""
    pairs = zip(net.weights, net.biases, strict=True)
    layers = [
        {"inputs": len(weight), "outputs": bias.size, "weight": numbers(weight), "bias": numbers(bias)}
        for weight, bias in pairs
    ]
    return {"name": name, "layers": layers}


def template() -> Any:
    return Environment(loader=PackageLoader("edp.exporting", ""), undefined=StrictUndefined).get_template(
        "policy.c.jinja"
    )


def number(value: Any) -> str:
    """A constant of type float, exactly."""
    text = f"{np.float32(value):.9g}"
    return text + ("f" if "." in text or "e" in text else ".0f")


def numbers(array: np.ndarray) -> str:
    """The content of an array, some numbers in each line."""
    found = [*map(number, array.ravel().tolist())]
    return ",\n".join(", ".join(found[at : at + IN_LINE]) for at in range(0, len(found), IN_LINE))


def identifier(file: str) -> str:
    """A name of C from the name of a file."""
    name = re.sub(r"\W+", "_", Path(file).stem, flags=re.ASCII).strip("_").lower()
    return name if name[:1].isalpha() else f"policy_{name}".rstrip("_")


def comment(text: str) -> str:
    """Text that is harmless in a comment: in one line, and without its end, escapes and trigraphs."""
    return re.sub(r"[^ -~]|[*?\\]", "_", text)


def texts(names: tuple[str, ...]) -> str:
    return ", ".join(map(text_constant, names))


def text_constant(text: str) -> str:
    """A constant of C. Everything but plain characters is written as octal bytes of UTF-8."""
    plain = lambda byte: 32 <= byte < 127 and chr(byte) not in '"\\?'  # noqa: E731
    return '"' + "".join(chr(byte) if plain(byte) else f"\\{byte:03o}" for byte in text.encode()) + '"'


class Compiled:
    """A C file, compiled and loaded, to be compared with the JAX policy before it is written."""

    def __init__(self, text: str, file: str, plan: Plan):
        self.plan, self.folder = plan, tempfile.TemporaryDirectory(prefix="edp-export-")
        source, library = Path(self.folder.name, "policy.c"), Path(self.folder.name, "policy.so")
        source.write_text(text, encoding="ascii")
        try:
            compile_c(source, library)
            self.act = getattr(ctypes.CDLL(str(library)), f"{identifier(file)}_act")
        except BaseException:
            self.folder.cleanup()
            raise

    def __enter__(self) -> "Compiled":
        return self

    def __exit__(self, *error: Any) -> None:
        self.folder.cleanup()

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """An action for each row. Rows that are refused become NaN."""
        actions = np.empty((len(inputs["observation"]), self.plan.units.dims[1]), np.float32)
        for row in range(len(actions)):
            given = [inputs[name][row] if name in inputs else None for name in ("observation", "noise", "gumbel")]
            arrays = [None if part is None else np.ascontiguousarray(part, np.float32) for part in given]
            if self.act(*(pointer(array) for array in arrays), pointer(actions[row])):
                actions[row] = np.nan
        return actions


def pointer(array: np.ndarray | None) -> Any:
    return None if array is None else array.ctypes.data_as(ctypes.c_void_p)


def compile_c(source: Path, library: Path) -> None:
    compiler = shutil.which(os.environ.get("CC") or "cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise UserError("a C file is compiled and compared before it is written, and there is no C compiler (cc) here")
    command = [compiler, *COMPILE, "-o", str(library), str(source), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
    if done.returncode:
        raise UserError(f"the C file cannot be compiled: {(done.stderr.strip().splitlines() or ['no message'])[0]}")
