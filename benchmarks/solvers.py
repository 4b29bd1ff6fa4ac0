"""How close a few network calls come to a thousand: solvers, orders, grids and thresholding on trained policies.

    python benchmarks/solvers.py RUN … [--json results/solvers.json]

For states of each run's data, actions are sampled with every solver and compared with the model's own chain of 1,000
DDPM steps: the maximum mean discrepancy of the actions in a state (squared, unbiased; Gaussian kernel, whose width is
the median distance of the chain's actions), and how far their mean Q is from that of the chain's, in units of its
spread there. Both are means over states, with the standard error of their difference to the paper's solver (dpm of
order 3, time-uniform, 15 calls).
"""

import argparse
import sys
from itertools import product
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from edp.acting.selection import acting_models
from edp.data.locate import find_task_file
from edp.diffusion import GRIDS, Sampler
from edp.files import write_json
from edp.runs import load
from edp.runs.directory import Run

STATES, ACTIONS = 128, 64
CALLS = (3, 4, 5, 6, 7, 8, 10, 12, 15)
PAPER = Sampler("dpm", 15)
SOLVERS = (("dpm", 1), ("dpm", 2), ("dpm", 3), ("dpm++", 3))
Z = 1.96


class Found(NamedTuple):
    """Of one solver, for each state."""

    mmd: np.ndarray
    q: np.ndarray  # the mean of the actions', less that of the chain's


def name_of(sampler: Sampler) -> str:
    solver = f"dpm-{sampler.order}" if sampler.name == "dpm" else sampler.name
    return f"{solver}, {sampler.grid}{'' if sampler.threshold else ', no threshold'}"


@eqx.filter_jit
def sample(policy, obs, key):
    """(states, actions, act) samples."""
    rows = jnp.repeat(obs, ACTIONS, axis=0)
    return policy.sample(rows, key).reshape(len(obs), ACTIONS, -1)


@jax.jit
def squared_mmd(x, y, width):
    """Unbiased, between two sets of actions in one state."""
    kernel = lambda a, b: jnp.exp(-jnp.sum((a[:, None] - b[None]) ** 2, axis=-1) / (2 * width**2))  # noqa: E731
    off_diagonal = lambda k: (k.sum() - jnp.trace(k)) / (len(k) * (len(k) - 1))  # noqa: E731
    return off_diagonal(kernel(x, x)) + off_diagonal(kernel(y, y)) - 2 * kernel(x, y).mean()


@eqx.filter_jit
def values(critic, obs, actions):
    """Q of every action."""
    q = critic(jnp.repeat(obs, ACTIONS, axis=0), actions.reshape(-1, actions.shape[-1])).min(axis=0)
    return q.reshape(len(obs), ACTIONS)


def study(policy, critic, obs) -> dict[Sampler, Found]:
    """What each solver gives for one policy; under DDPM's own name, a second chain: how much is chance."""
    chain = policy.with_sampler(Sampler("ddpm", policy.schedule.steps))
    reference, again = (sample(chain, obs, jax.random.key(i)) for i in (1, 2))
    distances = jnp.sqrt(jnp.sum((reference[:, :, None] - reference[:, None]) ** 2, axis=-1))
    width = float(jnp.median(distances[:, ~np.eye(ACTIONS, dtype=bool)]))
    compare = jax.vmap(squared_mmd, (0, 0, None))
    center = np.asarray(values(critic, obs, reference)) if critic is not None else np.zeros((len(obs), ACTIONS))
    spread = center.std(axis=1).mean() or 1.0

    def judge(actions) -> Found:
        q = np.asarray(values(critic, obs, actions)) if critic is not None else center
        return Found(np.asarray(compare(actions, reference, width)), (q - center).mean(axis=1) / spread)

    found = {chain.sampler: judge(again)}
    for (name, order), grid, threshold, calls in product(SOLVERS, GRIDS, (True, False), CALLS):
        sampler = Sampler(name, calls, order, grid, threshold)
        found[sampler] = judge(sample(policy.with_sampler(sampler), obs, jax.random.key(3)))
    return found


def summary(found: dict[Sampler, Found]) -> list[dict]:
    paper, rows = found[PAPER], []
    for sampler, one in found.items():
        further, off = one.mmd - paper.mmd, np.abs(one.q) - np.abs(paper.q)
        error = lambda x: float(x.std(ddof=1) / np.sqrt(len(x)))  # noqa: E731
        rows.append(
            {
                "solver": name_of(sampler),
                "calls": sampler.calls,
                "mmd": float(one.mmd.mean()),
                "mmd_minus_paper": [float(further.mean()), error(further)],
                "q": float(one.q.mean()),
                "q_gap": float(np.abs(one.q).mean()),
                "q_gap_minus_paper": [float(off.mean()), error(off)],
            }
        )
    return rows


def no_worse(row: dict) -> bool:
    """Not significantly further from the chain than the paper's solver, neither in actions nor in Q."""
    return all(mean <= Z * error for mean, error in (row["mmd_minus_paper"], row["q_gap_minus_paper"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    policies = []
    for path in options.runs:
        folder = Run.open(path)
        spec, checkpoint = load.load_checkpoint(folder)
        dataset = load.read_run_data(folder, spec, load.locate_run_data(folder, spec, find_task_file))
        rows = np.random.default_rng(0).choice(len(dataset.obs), STATES, replace=False)
        models = acting_models(checkpoint.tree, "average", None)
        for i in range(spec.training.seeds):
            policy, critic = jax.tree.map(lambda leaf: jnp.asarray(leaf[i]), models)  # noqa: B023
            found = summary(study(policy, critic, jnp.asarray(dataset.obs[rows])))
            algorithm = folder.config["algorithm"]["name"]
            about = {"task": spec.task.name, "algorithm": algorithm, "seed": spec.training.seed + i}
            policies.append(about | {"solvers": found})
            show(policies[-1])
    if options.json:
        write_json(options.json, {"states": STATES, "actions": ACTIONS, "policies": policies})


def show(policy: dict) -> None:
    print(f"{policy['algorithm']} on {policy['task']}, seed {policy['seed']}: MMD² × 1000 (Q less the chain's)")
    print("(* no worse than dpm-3, uniform, 15 calls)")
    names = list(dict.fromkeys(row["solver"] for row in policy["solvers"]))
    print(f"{'':<28}" + "".join(f"{calls:>15}" for calls in CALLS))
    for name in names:
        cells = {row["calls"]: row for row in policy["solvers"] if row["solver"] == name}
        if name.startswith("ddpm"):
            row = next(iter(cells.values()))
            print(f"{'the chain again':<28}{1000 * row['mmd']:>7.1f} ({row['q']:+.2f})")
            continue
        text = (f"{1000 * row['mmd']:>7.1f} ({row['q']:+.2f}){'*' if no_worse(row) else ' '}" for row in cells.values())
        print(f"{name:<28}" + "".join(text), flush=True)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
