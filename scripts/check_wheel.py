"""Build the wheel, install it in a new environment of the Python that runs this, and use it.

    python scripts/check_wheel.py [--lowest] [--keep FOLDER]

The lock files are not used: pip installs the newest versions that pyproject.toml allows, or, with ``--lowest``, the
lowest version of each direct dependency; also those of the extras. Needs an index to install from, and takes
some minutes.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("onnx", "sweep")

# Runs in the new environment, in an empty folder.
SMOKE_TEST = r"""
import json, subprocess, sys
from pathlib import Path

import numpy as np

def command(*words):
    subprocess.run([str(Path(sys.executable).parent / "edp"), *map(str, words)], check=True)

import edp
assert Path(edp.__file__).is_relative_to(sys.prefix), edp.__file__
command("--version")
command("data", "list")

rng, n = np.random.default_rng(0), 400
ends = np.arange(1, n + 1) % 50 == 0
np.savez("tiny.npz", observations=rng.uniform(-1, 1, (n, 3)), actions=rng.uniform(-1.9, 1.9, (n, 1)),
         rewards=rng.uniform(-1, 0, n), terminals=np.zeros(n, bool), timeouts=ends)
command("train", "tiny.npz", "--env", "Pendulum-v1", "--steps", 20, "--epoch-steps", 10, "--eval-every", 20,
        "--checkpoint-every", 10, "--episodes", 1, "--batch-size", 16, "--hidden", "16,16", "--out", "run")
command("eval", "run", "--episodes", 1, "--env", "Pendulum-v1")
command("data", "convert", "tiny.npz", "tiny.parquet")
command("report", "run", "--out", "report.html", "--figures", "figures")
assert Path("report.html").stat().st_size > 10_000
assert np.isfinite(edp.load_policy("run").act(np.zeros(3))).all()
assert json.loads(Path("run/config.json").read_text())["packages"]["edp"] == edp.__version__

import onnxruntime
command("export", "run", "policy.onnx", "--eas", 3)
session, example = onnxruntime.InferenceSession("policy.onnx"), json.loads(Path("policy.json").read_text())["example"]
(action,) = session.run(None, {given.name: np.array(example[given.name], np.float32) for given in session.get_inputs()})
np.testing.assert_allclose(action, example["action"], rtol=1e-4)

Path("sweep.toml").write_text('''
[train]
task = "tiny.npz"
env = "Pendulum-v1"
steps = 20
epoch_steps = 10
eval_every = 10
episodes = 1
batch_size = 16
hidden = [16, 16]
[space]
lr = {low = 1e-4, high = 1e-2, log = true}
[search]
method = "optuna"
trials = 3
[stopping]
first = 10
factor = 2
''')
command("sweep", "sweep.toml", "--out", "swept", "--parallel", 2)
command("report", "swept", "--out", "swept.html")

import gymnasium
import edp.envs
for name in ("kitchen-complete-d4rl-v0", "antmaze-umaze-d4rl-v0", "pen-d4rl-v1", "hopper-d4rl-v2"):
    env = gymnasium.make(f"edp/{name}")
    env.reset(seed=0)
    env.step(env.action_space.sample())
    env.close()
    print(name, "steps")
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lowest", action="store_true", help="the lowest version of each direct dependency")
    parser.add_argument("--keep", type=Path, help="use this folder, and leave the environment in it")
    args = parser.parse_args()
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
        check(args.keep.resolve(), args.lowest)
    else:
        with tempfile.TemporaryDirectory() as folder:
            check(Path(folder), args.lowest)
    return 0


def check(folder: Path, lowest: bool) -> None:
    wheel = build(folder)
    python = environment(folder / "venv")
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    wanted = f"{wheel}[{','.join(EXTRAS)}]"
    subprocess.run([*pip, "install", "--quiet", wanted, *(lowest_versions() if lowest else [])], check=True)
    subprocess.run([*pip, "check"], check=True)
    subprocess.run([*pip, "freeze", "--exclude", "edp-rl"], check=True)
    place = folder / "use"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    subprocess.run([python, "-I", "-c", SMOKE_TEST], cwd=place, check=True)
    print(f"Python {sys.version.split()[0]}: the wheel installs and works")


def build(folder: Path) -> Path:
    """Build the wheel from a copy of the sources, so that nothing is left in the repository."""
    source = folder / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--wheel-dir", folder / "dist", source], check=True)
    return next((folder / "dist").glob("edp_rl-*.whl"))


def environment(folder: Path) -> Path:
    venv.create(folder, with_pip=True, clear=True)
    return folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"


def lowest_versions() -> list[str]:
    """Pin each direct dependency, and those of the extras, to its lower bound in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    dependencies = project["dependencies"] + [
        each for name in EXTRAS for each in project["optional-dependencies"][name]
    ]
    return [re.sub(r">=([\w.]+).*", r"==\1", dependency) for dependency in dependencies]


if __name__ == "__main__":
    sys.exit(main())
