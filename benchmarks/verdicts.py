"""Whether the offline verdict on policies agrees with the simulator, on the logs of examples/heating.

    python benchmarks/verdicts.py [--logs 0 1 2] [--out runs/verdicts] [--json results/verdicts.json]

For each log (a seed of its weather and operators), policies of very different quality are trained or made: cloned, by
two algorithms, too short, by inverted rewards, too greedily, with noise, at random, and constant. The verdict on each
uses the log alone. The truth is the mean difference to the operators in the simulator, with weather that is not in
the log. Runs that are in the folder already are not trained again.
"""

import argparse
import csv
import json
import sys
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import spearmanr

from edp.acting.actors import Actors
from edp.acting.judge import Judge, JudgeOptions, act_in_block, one_of
from edp.cli import main as edp
from edp.runs import load
from edp.runs.directory import Run

HEATING = Path(__file__).parents[1] / "examples" / "heating"
sys.path.insert(0, str(HEATING))

import logs  # noqa: E402
import picture  # noqa: E402

import heating  # noqa: E402

EPISODES = range(5000, 5060)  # seeds of the weather in the simulator
COMMON = ["--columns", str(HEATING / "columns.toml"), "--preset", "edp", "--hidden", "64,64", "--batch-size", "128"]
COMMON += ["--epoch-steps", "500", "--eval-every", "1000000", "--quiet"]
DIFFUSION, CRITIC = ["--calls", "5"], ["--critic-hidden", "64,64"]
TRAINED = {  # the log, and options
    "cloned": ("log", ["--algo", "bc", "--steps", "4000", *DIFFUSION]),
    "td3bc": ("log", ["--algo", "td3bc", "--steps", "6000", "--eas", "4", *DIFFUSION, *CRITIC]),
    "iql": ("log", ["--algo", "iql", "--steps", "6000", "--eas", "4", *DIFFUSION, *CRITIC]),
    "td3bc, 500 steps": ("log", ["--algo", "td3bc", "--steps", "500", "--eas", "4", *DIFFUSION, *CRITIC]),
    "iql, inverted rewards": ("inverted", ["--algo", "iql", "--steps", "6000", "--eas", "4", *DIFFUSION, *CRITIC]),
    "td3bc, 30 times the greed": (
        "log",
        ["--algo", "td3bc", "--steps", "6000", "--eas", "1", "--loss-weight", "30", *DIFFUSION, *CRITIC],
    ),
    "iql, gaussian": ("log", ["--algo", "iql", "--policy", "gaussian", "--steps", "3000", "--eas", "1", *CRITIC]),
}
CONSTANT = {"off": (20.0, 0.0), "always lukewarm": (40.0, 50.0), "always hot": (70.0, 90.0)}


class Constant(eqx.Module):
    action: jax.Array

    def act(self, obs, key, control):
        return jnp.broadcast_to(self.action[None], (len(obs), 2))


class Noisy(eqx.Module):
    """Another policy's actions with noise; without a policy, random actions."""

    policy: Any
    noise: jax.Array

    def act(self, obs, key, control):
        act_key, noise_key = jax.random.split(key)
        if self.policy is None:
            return jax.random.uniform(noise_key, (len(obs), 2), minval=-1, maxval=1)
        action = self.policy.act(obs, act_key, control)
        return jnp.clip(action + self.noise * jax.random.normal(noise_key, action.shape), -1, 1)


def make_logs(seed: int, folder: Path) -> dict[str, Path]:
    """The log, and a copy of it with inverted rewards."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {name: folder / f"{name}.csv" for name in ("log", "inverted")}
    logs.main(["--out", str(found["log"]), "--seed", str(seed)])
    with found["log"].open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    at = head.index("reward_eur")
    with found["inverted"].open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *([*row[:at], str(-float(row[at])), *row[at + 1 :]] for row in rows)])
    return found


def make_policies(seed: int, folder: Path) -> tuple[dict[str, Actors], Run]:
    files, policies = make_logs(seed, folder), {}
    for name, (log, options) in TRAINED.items():
        out = folder / name.replace(", ", "-").replace(" ", "-")
        if not (out / "config.json").exists():
            assert edp(["train", str(files[log]), *COMMON, *options, "--out", str(out)]) == 0
        spec, found = load.load_checkpoint(Run.open(out))
        # The slow average of parameters is still close to its start after so few steps.
        policies[name] = Actors.from_states(spec, spec.evaluation.with_values(act_with="online"), found.tree)
    for name, std in (("cloned", 0.3), ("cloned", 1.0), ("td3bc", 0.3)):
        policies[f"{name}, noise {std}"] = Actors(Noisy(policies[name].policies, jnp.array([std])), None)
    policies["random"] = Actors(Noisy(None, jnp.zeros(1)), None)
    low, high = np.array(heating.LOW), np.array(heating.HIGH)
    for name, action in CONSTANT.items():
        scaled = np.clip(2 * (np.array([action]) - low) / (high - low) - 1, -0.999, 0.999)
        policies[name] = Actors(Constant(jnp.asarray(scaled, jnp.float32)), None)
    return policies, Run.open(folder / "cloned")


def simulate(actors: Actors, units: Any) -> np.ndarray:
    """The mean reward of a step in each episode."""
    models, count = one_of(actors, 0), iter(range(10**6))

    def act(obs: np.ndarray) -> np.ndarray:
        states, key = units.observations_to_network(obs), jax.random.key(next(count))
        return units.actions_from_network(np.asarray(act_in_block(*models, actors.selection, states, key)))

    return picture.play(act, EPISODES).returns / heating.STEPS


def try_log(seed: int, folder: Path) -> dict[str, Any]:
    policies, run = make_policies(seed, folder)
    spec = load.read_spec(run)
    operators = [picture.play(picture.of_operators(kind, EPISODES), EPISODES).returns for kind in logs.OPERATORS]
    operators = np.mean(operators, axis=0) / heating.STEPS
    start = time.perf_counter()
    judge = Judge(load.read_run_data(run, spec, str(run.config["file"])), JudgeOptions(), "reward_eur")
    said = judge.seconds(policies["cloned"], len(policies)) + time.perf_counter() - start
    rows, took = [], 0.0
    for name, actors in policies.items():
        gain = simulate(actors, spec.units) - operators
        start = time.perf_counter()
        found = judge(actors).verdict
        took += time.perf_counter() - start
        truth, error = float(gain.mean()), float(gain.std() / np.sqrt(len(gain)))
        right = "right" if (found.word == "better") == (truth > 0) else "wrong"
        answer = found.word if found.word == "cannot tell" else right
        rows.append({"name": name, "truth": truth, "truth_error": error, "answer": answer, **found.to_json()})
        print(f"{name:26} truth {truth:+.4f} ± {error:.4f}  {answer:11}  {found.sentence}", flush=True)
    pairs = np.array([(row["truth"], row["difference"][1], row["fitted_q"][1]) for row in rows])
    counts = {word: sum(row["answer"] == word for row in rows) for word in ("right", "wrong", "cannot tell")}
    correlation = [float(spearmanr(pairs[:, 0], pairs[:, column])[0]) for column in (1, 2)]
    print(f"log {seed}: {counts}, rank correlation {correlation[0]:.2f} (fitted Q {correlation[1]:.2f})", flush=True)
    return {
        **{"log": seed, "rank_correlation": correlation[0], "rank_correlation_fitted_q": correlation[1], **counts},
        **{"seconds": round(took, 1), "seconds_said": round(said, 1)},
        "policies": sorted(rows, key=lambda row: -row["truth"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=Path("runs/verdicts"))
    parser.add_argument("--json", type=Path)
    values = parser.parse_args()
    found = [try_log(seed, values.out / str(seed)) for seed in values.logs]
    if values.json:
        values.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
