"""Whether the critics of a run can be believed: their values and advantages against the returns in the data.

    python benchmarks/critics.py RUN … [--json results/critics.json]

For random rows of the data, G is the discounted return from the row to the end of its episode (where an episode was cut
off, plus the value of its last state). A row of the output is one checkpoint of the first seed:

- ``q`` and ``return``: the means of Q(s, a) and of G;
- ``error``: the std of G - Q;
- ``slope``: of G - V(s) on the advantage A = Q(s, a) - V(s), where V(s) is the mean Q of the policy's own actions. It
  is 1 if advantages are right, and 0 if they say nothing;
- ``agreement``: the correlation of the two critics' advantages.
"""

import argparse
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from edp.data import episodes
from edp.data.locate import find_task_file
from edp.files import write_json
from edp.runs import load
from edp.runs.checkpoints import Checkpoints
from edp.runs.directory import Run

ROWS, ACTIONS = 8192, 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--json", type=Path)
    values = parser.parse_args()
    results = json.loads(values.json.read_text(encoding="utf-8")) if values.json and values.json.exists() else []
    for path in values.runs:
        run = Run.open(path)
        spec = load.read_spec(run)
        data = load.read_run_data(run, spec, load.locate_run_data(run, spec, find_task_file))
        data = episodes.with_rewards(data, spec.data.rewards)
        tail = episodes.episode_tails(data, spec.algorithm.discount)  # pyright: ignore[reportAttributeAccessIssue]
        rows = np.random.default_rng(0).permutation(len(data.obs))[:ROWS]
        obs, action, last = (jnp.asarray(part[rows]) for part in (data.obs, data.action, tail.obs))
        for step in Checkpoints(run.checkpoints).steps():
            tree = load.load_checkpoint(run, step)[1].tree
            policy, critic = (jax.tree.map(lambda leaf: leaf[0], part.target) for part in (tree.policy, tree.critic))
            keys = jax.random.split(jax.random.key(0), ACTIONS)
            q = critic(obs, action)
            base = jax.lax.map(lambda key: critic(obs, policy.sample(obs, key)), keys).mean(axis=0)  # noqa: B023
            end = critic(last, policy.sample(last, keys[0])).min(axis=0)
            returns = np.asarray(tail.reward[rows]) + np.asarray(tail.discount[rows]) * np.asarray(end)
            advantages = np.asarray(q - base)
            advantage, left = advantages.mean(axis=0), returns - np.asarray(base.mean(axis=0))
            row = {
                "run": path.name,
                "step": step,
                "q": float(q.mean()),
                "return": float(returns.mean()),
                "error": float((returns - np.asarray(q.mean(axis=0))).std()),
                "slope": float(np.cov(left, advantage)[0, 1] / advantage.var(ddof=1)),
                "correlation": float(np.corrcoef(left, advantage)[0, 1]),
                "agreement": float(np.corrcoef(*advantages[:2])[0, 1]),
            }
            row = {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}
            results.append(row)
            print(*(f"{name} {value}" for name, value in row.items()), sep="  ", flush=True)
    if values.json:
        write_json(values.json, results)


if __name__ == "__main__":
    main()
