"""Train the behaviours behind the built-in data sets, online, on D4RL's physics.

A development tool: the package ships two actors that this script made and never needs the script itself. In a
separate environment (it brings PyTorch along, so take the CPU build of that first):

    pip install torch --index-url YOUR-CPU-INDEX && pip install sbx-rl -e .
    python scripts/train_behaviours.py --env edp/hopper-d4rl-v2 --out runs/behaviours

Every ``--every`` steps the actor is written as ``STEPS.npz`` and the mean return of ten episodes of its *stochastic*
policy, which is what the data sets are made with, is appended to ``scores.jsonl``.
"""

import argparse
import json
from pathlib import Path

import gymnasium
import numpy as np
import sbx  # pyright: ignore[reportMissingImports]
from stable_baselines3.common.callbacks import BaseCallback  # pyright: ignore[reportMissingImports]
from stable_baselines3.common.env_util import make_vec_env  # pyright: ignore[reportMissingImports]

import edp.envs  # noqa: F401  (registers the environments)
from edp.data.synthesis.behaviours import SquashedGaussian


def to_npz(actor_params) -> dict[str, np.ndarray]:
    """Flax's two hidden layers, mean and log-std heads as the arrays ``SquashedGaussian`` reads."""
    layers = [actor_params["params"][f"Dense_{i}"] for i in range(4)]
    names = [("w0", "b0"), ("w1", "b1"), ("w_mu", "b_mu"), ("w_ls", "b_ls")]
    return {
        name: np.asarray(layer[part], np.float32)
        for layer, pair in zip(layers, names, strict=True)
        for name, part in zip(pair, ("kernel", "bias"), strict=True)
    }


class KeepActors(BaseCallback):
    def __init__(self, env_id: str, out: Path, every: int, episodes: int):
        super().__init__()
        self.env, self.out, self.every, self.episodes = gymnasium.make(env_id), out, every, episodes
        self.next = every

    def _on_step(self) -> bool:
        if self.num_timesteps >= self.next:
            self.next += self.every
            arrays = to_npz(self.model.policy.actor_state.params)
            np.savez(self.out / f"{self.num_timesteps}.npz", **arrays)
            returns = [self.episode(SquashedGaussian(arrays), seed) for seed in range(self.episodes)]
            score = {"steps": self.num_timesteps, "mean": np.mean(returns), "std": np.std(returns)}
            with open(self.out / "scores.jsonl", "a", encoding="utf-8") as file:
                file.write(json.dumps(score) + "\n")
            print(score, flush=True)
        return True

    def episode(self, policy: SquashedGaussian, seed: int) -> float:
        rng = np.random.default_rng(seed)
        obs, _ = self.env.reset(seed=seed)
        total, done = 0.0, False
        while not done:
            obs, reward, terminated, truncated, _ = self.env.step(policy(obs[None], rng)[0])
            total, done = total + float(reward), terminated or truncated
        return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="edp/hopper-d4rl-v2")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--every", type=int, default=10_000)
    parser.add_argument("--episodes", type=int, default=10)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True)
    model = sbx.TQC(
        "MlpPolicy",
        make_vec_env(args.env, n_envs=8, seed=args.seed),
        learning_starts=5_000,
        batch_size=args.batch_size,
        gradient_steps=-1,  # one for each environment step
        top_quantiles_to_drop_per_net=5,  # the TQC paper's choice for Hopper
        policy_kwargs={"net_arch": {"pi": [args.width] * 2, "qf": [args.width] * 2}},
        seed=args.seed,
    )
    model.learn(args.steps, callback=KeepActors(args.env, args.out, args.every, args.episodes))
