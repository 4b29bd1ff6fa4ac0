"""What an evaluation costs beyond its environment steps and its network's matmuls.

    python benchmarks/evaluate.py [--json results/evaluate.json]

Ten episodes of 1,000 steps of Hopper with EAS of 10 actions and 15 network calls (the network is untrained, and falling
does not end the episode). In turns: the evaluation; the same number of steps of the same environments alone; and the
machine's GEMM rate, at which the evaluation's matmuls are counted.
"""

import argparse
import statistics
from pathlib import Path

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

import edp.envs  # noqa: F401
from edp.acting.actors import Actors
from edp.acting.rollout import Pool, roll_out_policies
from edp.acting.selection import Selection, act
from edp.bench.flops import gemm, gemm_rate, matmul_flops, time_call
from edp.bench.variants import describe_machine
from edp.files import write_json
from edp.networks import Critic
from edp.policies import DiffusionConfig

EPISODES, STEPS, ACTIONS, ROUNDS = 10, 1000, 10, 5
OBS, ACT = 11, 3


def endless() -> gymnasium.Env:
    return gymnasium.make("edp/hopper-d4rl-v2", disable_env_checker=True, terminate_when_unhealthy=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    values = parser.parse_args()
    keys = jax.random.split(jax.random.key(0), 1)
    policies = jax.vmap(lambda key: DiffusionConfig().build(OBS, ACT, key))(keys)
    critics = jax.vmap(lambda key: Critic(OBS, ACT, (256, 256, 256), key))(keys)
    inputs = jnp.zeros((1, EPISODES, OBS)), jnp.zeros((1, EPISODES)), jnp.zeros((1, EPISODES), jnp.int32)
    places = jax.random.split(jax.random.key(1), (1, EPISODES))
    flops = STEPS * matmul_flops(
        lambda *args: act.__wrapped__(*args, Selection(ACTIONS)),  # pyright: ignore[reportAttributeAccessIssue]
        policies,
        critics,
        None,
        *inputs,
        places,
    )
    pool, multiply = Pool(endless, EPISODES), gemm()
    actions = np.random.default_rng(0).uniform(-1, 1, (STEPS, EPISODES, ACT)).astype(np.float32)

    def whole() -> None:
        actors = Actors(policies, critics, Selection(ACTIONS))
        found = roll_out_policies(actors, [pool], episodes=EPISODES, seed=0)
        assert (found.lengths == STEPS).all()

    def environments() -> None:
        for i, env in enumerate(pool.free):
            env.reset(seed=i)
        for row in actions:
            for env, action in zip(pool.free, row, strict=True):
                env.step(action)

    whole()
    gemm_rate(*multiply)
    rounds = [(time_call(whole), time_call(environments), flops / gemm_rate(*multiply)) for _ in range(ROUNDS)]
    ratios = [total / (env + network) for total, env, network in rounds]
    evaluation, env, network = (statistics.median(column) for column in zip(*rounds, strict=True))
    result = {
        "about": describe_machine(),
        "evaluation_seconds": evaluation,
        "environment_seconds": env,
        "network_gflop": flops / 1e9,
        "network_seconds_at_gemm_rate": network,
        "ratio": statistics.median(ratios),
        "spread": [min(ratios), max(ratios)],
    }
    print(f"an evaluation of {EPISODES} episodes of {STEPS:,} steps: {evaluation:.1f} s")
    print(f"  its environment steps alone: {env:.1f} s")
    print(f"  its {flops / 1e9:,.0f} GFLOP of matmuls at the machine's GEMM rate: {network:.1f} s")
    print(f"  the evaluation takes {result['ratio']:.2f} x their sum ({min(ratios):.2f} to {max(ratios):.2f})")
    if values.json:
        write_json(values.json, result)


if __name__ == "__main__":
    main()
