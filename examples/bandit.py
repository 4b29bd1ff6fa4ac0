"""Two ways of acting in the data, one of them good: what each policy and each algorithm makes of it.

    python examples/bandit.py [--out docs/bandit.png]

Trains on the bandit of ``contextual_bandit.py`` with the same parts that ``edp train`` uses, prints the share of
each policy's samples in the good mode, and draws them. A few minutes on two cores.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import contextual_bandit
from edp.algorithms import ALGORITHMS, InitialState, Update
from edp.config import defaults
from edp.devices.seeds import seed_keys
from edp.policies import POLICIES, Policy
from edp.training import epoch
from edp.training.batch_source import make_batch_source

SMALL = {"lr": 3e-3, "tau": 0.01, "policy_target_after": 0, "hidden": (64,) * 3, "critic_hidden": (64, 64)}
# Both modes exactly: the paper's sampler on fine noise levels. One of the two: Diffusion-QL's few, and less imitation.
IMITATE = {"schedule": "vp", "diffusion_steps": 50}
IMPROVE = {"schedule": "vp", "diffusion_steps": 5, "sampler": "ddpm", "calls": 5, "bc_weight": 0.2}
WEIGHTED = IMPROVE | {"loss_weight": 10.0}  # against imitation of both modes
# DAC's samples follow the data's density times exp(Q / (2 · eta · mean |Q|)), which would leave 30 % in the bad mode
# with eta = 1. With 5 noise levels, steps along the slope of Q lead too far. Q is asked about actions with noise, which
# may lie beyond the data's: there, slopes of ReLU networks have the right sign (docs/algorithms.md).
GUIDED = {"schedule": "vp", "diffusion_steps": 20, "sampler": "ddpm", "calls": 20, "eta": 0.1}
GUIDED |= {"critics": 2, "rho": 0.0, "critic_activation": "relu"}


class Case(NamedTuple):
    algorithm: str
    policy: str
    steps: int
    options: dict


CASES = {
    "BC, diffusion": Case("bc", "diffusion", 5000, IMITATE),
    "BC, Gaussian": Case("bc", "gaussian", 2000, {}),
    "TD3+BC": Case("td3bc", "diffusion", 2000, IMPROVE),
    "CRR": Case("crr", "diffusion", 2000, WEIGHTED | {"beta": 0.1, "samples": 4}),
    "CRR, ELBO": Case("crr", "diffusion", 2000, WEIGHTED | {"beta": 0.1, "samples": 4, "likelihood": "elbo"}),
    "IQL": Case("iql", "diffusion", 2000, WEIGHTED | {"temperature": 10.0}),
    "IQL, ELBO": Case("iql", "diffusion", 2000, WEIGHTED | {"temperature": 10.0, "likelihood": "elbo"}),
    "AWAC": Case("awac", "diffusion", 2000, WEIGHTED | {"beta": 0.1}),
    "AWR": Case("awr", "diffusion", 2000, WEIGHTED | {"beta": 0.2}),
    "OneStep": Case("onestep", "diffusion", 2000, WEIGHTED | {"temperature": 10.0, "evaluation_steps": 1000}),
    "CQL": Case("cql", "diffusion", 2000, IMPROVE | {"conservatism": 0.5, "samples": 4}),
}

# Policies and algorithms that came after EDP.
LATER = {
    "BC, flow": Case("bc", "flow", 5000, {}),
    "BC, mean flow": Case("bc", "meanflow", 5000, {}),
    "TD3+BC, mean flow": Case("td3bc", "meanflow", 1500, {"bc_weight": 0.2}),
    "FQL": Case("td3bc", "distilled", 2000, {"distillation": 1.0}),
    "ReBRAC, flow": Case("rebrac", "flow", 2000, {"actor_penalty": 0.05}),
    "DAC": Case("dac", "diffusion", 2000, GUIDED),
}


def fit(case: Case, seed: int = 0) -> Policy:
    """The averaged policy after training on 4,000 rows."""
    parts = ALGORITHMS[case.algorithm], POLICIES[case.policy]
    layers = defaults.layers(case.algorithm, case.policy, "locomotion", {}, None)
    algorithm, policy = defaults.resolve(parts, [*layers, ("small", SMALL)], case.options).parts
    data = jax.tree.map(jnp.asarray, make_batch_source(algorithm, policy, contextual_bandit.make(4000, seed)))
    keys = seed_keys(range(seed, seed + 1))
    states = epoch.init_states(InitialState(algorithm, policy, 1, 1), keys)
    states, *_ = epoch.epoch(Update(algorithm), states, data, epoch.epoch_keys(keys, 1, case.steps), batch_size=256)
    return jax.tree.map(lambda leaf: leaf[0], states.policy.target)


def sample(policy: Policy, context: np.ndarray, seed: int = 1) -> np.ndarray:
    """One action for each context."""
    draw = jax.jit(partial(type(policy).sample, key=jax.random.key(seed)))
    return np.asarray(draw(policy, jnp.asarray(context)))


def main() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/bandit.png"))
    args = parser.parse_args()
    held_out = contextual_bandit.make(1500, seed=99)
    context, line = held_out.obs, np.linspace(-1, 1, 200)
    figure, axes = plt.subplots(3, 6, figsize=(13, 6.9), sharex=True, sharey=True, layout="constrained")
    drawn, cases = {"the data": held_out.action}, CASES | LATER
    for axis, name in zip(axes.flat, ["the data", *cases], strict=True):
        actions = drawn.get(name)
        if actions is None:
            actions = sample(fit(cases[name]), context)
        share = contextual_bandit.share_in_good_mode(context, actions)
        print(f"{name:<18}{share:>6.1%} of samples in the good mode", flush=True)
        near = np.abs(actions - contextual_bandit.good(context)) < contextual_bandit.RADIUS
        axis.plot(line, contextual_bandit.good(line), color="0.6", lw=6, alpha=0.35, solid_capstyle="butt")
        axis.plot(line, -contextual_bandit.good(line), color="0.6", lw=6, alpha=0.35, solid_capstyle="butt")
        axis.scatter(context, actions, s=3, c=np.where(near[:, 0], "#0b6e4f", "#c1440e"), linewidths=0)
        axis.set_title(f"{name}: {share:.0%}", fontsize=10)
        axis.set_ylim(-1.15, 1.15)
        axis.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("context", fontsize=10)
    figure.supylabel("action", fontsize=10)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(args.out, dpi=110)
    print(args.out)


if __name__ == "__main__":
    main()
