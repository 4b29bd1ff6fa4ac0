"""What a trained policy does, written down for reports: actions beside the data's, and an episode with its values.

For each step of the episode there is what EAS chose from: the candidates, how they are valued, and the choice.
"""

import json
from functools import partial
from typing import Any

import gymnasium
import jax
import numpy as np

from edp.acting import rollout
from edp.acting.evaluator import actors
from edp.acting.validation import Validator
from edp.config.spec import Spec, check_acting
from edp.data.dataset import Dataset
from edp.envs.antmaze import CELL, AntMaze, cells, centre
from edp.errors import UserError, first_line
from edp.files import write_errors, write_json
from edp.runs.checkpoints import Checkpoint
from edp.runs.directory import Run

PATHS = 5  # episodes in mazes, for their paths
LONGEST = 5000  # steps of an episode
POINTS = 400  # steps of it that are kept
CHOICES = 12  # steps whose candidates are kept
CANDIDATES = 50  # of each of them
PLANE = 1000  # points that are kept where there are two actions, or one for a state of one number

consider = jax.jit(rollout.consider, static_argnames="actions")


def look_at(folder: Run, spec: Spec, found: Checkpoint, dataset: Dataset | None) -> dict[str, Any]:
    """Look at the first seed that has not failed, and keep what was seen in the run directory."""
    seeds = range(spec.training.seed, spec.training.seed + spec.training.seeds)
    row = next((row for row, seed in enumerate(seeds) if seed not in found.failed), None)
    if row is None:
        raise UserError(f"{folder.folder}: all of its seeds have failed")
    seen: dict[str, Any] = {"step": found.step, "seed": seeds[row]}
    if dataset is not None and not spec.policy.reads_histories:
        seen |= compare(spec, jax.tree.map(lambda leaf: leaf[row : row + 1], found.tree), dataset)
    if spec.task.env and not spec.policy.reads_histories:
        sampler = check_acting(spec, spec.evaluation)
        models = actors(jax.tree.map(lambda leaf: leaf[row], found.tree), spec.evaluation.act_with, sampler)
        env = spec.task.make_env()
        try:
            maze = map_of(env)
            seed = spec.evaluation.env_seed
            episodes = [play(spec, models, env, seed + number) for number in range(PATHS if maze else 1)]
        except Exception as error:  # of the environment, which may be anybody's
            why = f"{type(error).__name__}: {first_line(error)}"
            raise UserError(f"{folder.folder}: its environment failed ({why})") from None
        finally:
            env.close()
        paths = [path for each in episodes if (path := each.pop("path"))]
        seen |= {"episode": episodes[0], "map": maze, "paths": paths}
    with write_errors(folder.look):
        write_json(folder.look, seen)
    return seen


def seen_at(folder: Run, step: int) -> set[str]:
    """What somebody has seen of the policy as it was after this step."""
    try:
        seen = json.loads(folder.look.read_text())
        return set(seen) if seen["step"] == step else set()
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return set()


def compare(spec: Spec, states: Any, dataset: Dataset) -> dict[str, Any]:
    """The policy's actions in states of the data, and the data's own."""
    validator = Validator(spec, dataset)
    chosen = validator.choose(states)
    seen = {"actions": {"data": validator.summary(validator.action), "policy": validator.described(chosen)}}
    both = {"data": spec.scale.act(validator.action[:PLANE]), "policy": spec.scale.act(chosen[0, :PLANE])}
    if spec.scale.dims[1] == 2:
        seen["plane"] = {name: short(actions) for name, actions in both.items()} | {"of": "actions"}
    elif spec.scale.dims == (1, 1):
        state = spec.scale.seen(validator.obs[:PLANE])
        pairs = {name: short(np.concatenate([state, actions], axis=1)) for name, actions in both.items()}
        seen["plane"] = pairs | {"of": "state and action"}
    return seen


def play(spec: Spec, models: tuple[Any, Any], env: gymnasium.Env, seed: int) -> dict[str, Any]:
    """One episode: rewards, values, candidates and places."""
    options, units = spec.evaluation, spec.scale
    ask = partial(consider, *models, actions=options.eas, way=options.way)
    obs, _ = env.reset(seed=seed)
    rewards, values, choices, path, over = [], [], [], [place_of(env, obs)], False
    while not over and len(rewards) < LONGEST:
        key = jax.random.fold_in(jax.random.key(seed), len(rewards))
        candidates, energy, chosen = ask(units.observe(np.asarray(obs)[None]), key)
        candidates, energy, chosen = np.asarray(candidates)[:, 0], np.asarray(energy)[:, 0], int(chosen[0])
        obs, reward, terminal, timeout, _ = env.step(units.act(candidates[chosen]))
        rewards.append(float(reward))
        values.append((energy[chosen], energy.min(), energy.max()))
        choices.append((candidates, energy, chosen))
        path.append(place_of(env, obs))
        over = terminal or timeout
    kept = spread(len(rewards), POINTS)
    seen: dict[str, Any] = {
        "env_seed": seed,
        "length": len(rewards),
        "return": round(sum(rewards), 4),
        "score": round(float(spec.task.score(sum(rewards))), 2),
        "at": kept.tolist(),
        "rewards": short(np.array(rewards)[kept]),
        "path": path[0] and {"points": short(np.array(path)[spread(len(path), POINTS)]), "goal": goal_of(env)},
    }
    if models[1] is not None:
        value, low, high = np.array(values)[kept].T
        seen |= {"q": short(value), "q_low": short(low), "q_high": short(high)}
        seen["choices"] = [
            {
                "at": int(at),
                "q": short(choices[at][1][:CANDIDATES]),
                "actions": short(units.act(choices[at][0][:CANDIDATES])),
                "chosen": choices[at][2] if choices[at][2] < CANDIDATES else None,
            }
            for at in (spread(len(rewards), CHOICES) if options.eas > 1 else ())
        ]
    return seen


def spread(count: int, most: int) -> np.ndarray:
    """Places from the first to the last, at most so many."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def short(numbers: np.ndarray) -> list:
    """For JSON, with five digits; NaN is null."""
    tidy = np.vectorize(lambda number: float(f"{number:.5g}") if np.isfinite(number) else None, otypes=[object])
    return tidy(np.asarray(numbers, float)).tolist() if numbers.size else []


def place_of(env: gymnasium.Env, obs: np.ndarray) -> tuple[float, float] | None:
    """Where something is on a plane, if that is what the environment is about."""
    inner = env.unwrapped
    if hasattr(inner, "point_env"):  # Gymnasium-Robotics' PointMaze
        x, y = inner.point_env.data.qpos[:2]  # pyright: ignore
    elif isinstance(inner, AntMaze) or np.shape(obs) == (2,):
        x, y = obs[:2]
    else:
        return None
    return float(x), float(y)


def goal_of(env: gymnasium.Env) -> list[float] | None:
    """Where this episode was to lead."""
    goal = np.asarray(getattr(env.unwrapped, "goal", ()), float)
    return goal.tolist() if goal.shape == (2,) and np.isfinite(goal).all() else None


def map_of(env: gymnasium.Env) -> dict[str, Any] | None:
    """The centres of a maze's walls, which are squares, and their size."""
    inner: Any = env.unwrapped
    if isinstance(inner, AntMaze):
        return {"walls": [centre(cell).tolist() for cell in cells(inner.maze, "#")], "cell": CELL}
    maze: Any = getattr(inner, "maze", None)
    if not hasattr(maze, "maze_map"):
        return None
    size, left, top = float(maze.maze_size_scaling), float(maze.x_map_center), float(maze.y_map_center)
    walls = [(i, j) for i, row in enumerate(maze.maze_map) for j, kind in enumerate(row) if kind == 1]
    return {"walls": [[(j + 0.5) * size - left, top - (i + 0.5) * size] for i, j in walls], "cell": size}
