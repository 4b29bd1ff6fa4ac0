"""What a trained policy does, for reports: its actions beside the data's, and an episode with its values.

Steps of the episode show the candidates of EAS, their values, and the one that was chosen.
"""

import json
from functools import partial
from typing import Any

import gymnasium
import jax
import numpy as np

from edp.acting.actors import Actors
from edp.acting.selection import rate_candidates
from edp.acting.validation import ActionComparison, limit_rows
from edp.config.spec import Spec
from edp.data.dataset import Dataset
from edp.envs.antmaze import CELL, AntMaze, cells, centre
from edp.errors import UserError, first_line
from edp.files import write_json
from edp.runs.checkpoints import Checkpoint
from edp.runs.directory import Run

PATHS = 5  # episodes to play in mazes
LONGEST = 5000  # steps of an episode, at most
POINTS = 400  # steps of an episode that are kept
CHOICES = 12  # steps of which the candidates are kept
CANDIDATES = 50  # candidates that are kept of each such step, at most
PLANE = 1000  # points of scatter plots, for two actions, or for one state and one action

rate = jax.jit(rate_candidates)


def inspect_policy(run: Run, spec: Spec, found: Checkpoint, dataset: Dataset | None) -> dict[str, Any]:
    """Inspect the policy of the first seed that has not failed. The result is kept in the run directory."""
    row = next((row for row, seed in enumerate(spec.seeds) if seed not in found.failed), None)
    if row is None:
        raise UserError(f"{run.folder}: all of its seeds have failed")
    seen: dict[str, Any] = {"step": found.step, "seed": spec.seeds[row]}
    if dataset is not None and not spec.policy.reads_histories:
        seen |= compare_actions(spec, jax.tree.map(lambda leaf: leaf[row : row + 1], found.tree), dataset)
    if spec.task.env and not spec.policy.reads_histories:
        actors = Actors.from_states(spec, spec.evaluation, jax.tree.map(lambda leaf: leaf[row], found.tree))
        env = spec.task.make_env()
        try:
            maze = maze_map(env)
            seed = spec.evaluation.env_seed
            episodes = [play_episode(spec, actors, env, seed + number) for number in range(PATHS if maze else 1)]
        except Exception as error:  # raised by the user's environment
            why = f"{type(error).__name__}: {first_line(error)}"
            raise UserError(f"{run.folder}: its environment failed ({why})") from None
        finally:
            env.close()
        paths = [path for each in episodes if (path := each.pop("path"))]
        seen |= {"episode": episodes[0], "map": maze, "paths": paths}
    write_json(run.look, seen)
    return seen


def inspected_parts(run: Run, step: int) -> set[str]:
    """The parts that an earlier inspection of the same checkpoint has saved."""
    try:
        seen = json.loads(run.look.read_text(encoding="utf-8"))
        return set(seen) if seen["step"] == step else set()
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return set()


def compare_actions(spec: Spec, states: Any, dataset: Dataset) -> dict[str, Any]:
    """The policy's actions in states of the data, and the actions of the data."""
    comparison = ActionComparison(spec, limit_rows(dataset))
    chosen = comparison.choose(states)
    seen = {"actions": {"data": comparison.summarise(comparison.action), "policy": comparison.describe(chosen)}}
    both = {
        "data": spec.units.actions_from_network(comparison.action[:PLANE]),
        "policy": spec.units.actions_from_network(chosen[0, :PLANE]),
    }
    if spec.units.dims[1] == 2:
        seen["plane"] = {name: json_numbers(actions) for name, actions in both.items()} | {"of": "actions"}
    elif spec.units.dims == (1, 1):
        state = spec.units.observations_from_network(comparison.obs[:PLANE])
        pairs = {name: json_numbers(np.concatenate([state, actions], axis=1)) for name, actions in both.items()}
        seen["plane"] = pairs | {"of": "state and action"}
    return seen


def play_episode(spec: Spec, actors: Actors, env: gymnasium.Env, seed: int) -> dict[str, Any]:
    """Play one episode of one seed's actors: rewards, values, candidates and positions."""
    units = spec.units
    choose = partial(rate, actors.policies, actors.critics, selection=actors.selection)
    obs, _ = env.reset(seed=seed)
    rewards, values, choices, path, over = [], [], [], [position_of(env, obs)], False
    while not over and len(rewards) < LONGEST:
        key = jax.random.fold_in(jax.random.key(seed), len(rewards))
        candidates, energy, chosen = choose(units.observations_to_network(np.asarray(obs)[None]), key)
        candidates, energy, chosen = np.asarray(candidates)[:, 0], np.asarray(energy)[:, 0], int(chosen[0])
        obs, reward, terminal, timeout, _ = env.step(units.actions_from_network(candidates[chosen]))
        rewards.append(float(reward))
        values.append((energy[chosen], energy.min(), energy.max()))
        choices.append((candidates, energy, chosen))
        path.append(position_of(env, obs))
        over = terminal or timeout
    kept = spaced_indices(len(rewards), POINTS)
    seen: dict[str, Any] = {
        "env_seed": seed,
        "length": len(rewards),
        "return": round(sum(rewards), 4),
        "score": round(float(spec.task.score(sum(rewards))), 2),
        "at": kept.tolist(),
        "rewards": json_numbers(np.array(rewards)[kept]),
        "path": path[0]
        and {"points": json_numbers(np.array(path)[spaced_indices(len(path), POINTS)]), "goal": goal_of(env)},
    }
    if actors.critics is not None:
        value, low, high = np.array(values)[kept].T
        seen |= {"q": json_numbers(value), "q_low": json_numbers(low), "q_high": json_numbers(high)}
        seen["choices"] = [
            {
                "at": int(at),
                "q": json_numbers(choices[at][1][:CANDIDATES]),
                "actions": json_numbers(units.actions_from_network(choices[at][0][:CANDIDATES])),
                "chosen": choices[at][2] if choices[at][2] < CANDIDATES else None,
            }
            for at in (spaced_indices(len(rewards), CHOICES) if actors.selection.candidates > 1 else ())
        ]
    return seen


def spaced_indices(count: int, most: int) -> np.ndarray:
    """At most ``most`` evenly spaced indices from the first to the last."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def json_numbers(numbers: np.ndarray) -> list:
    """Numbers for JSON with five digits, and None for NaN."""
    tidy = np.vectorize(lambda number: float(f"{number:.5g}") if np.isfinite(number) else None, otypes=[object])
    return tidy(np.asarray(numbers, float)).tolist() if numbers.size else []


def position_of(env: gymnasium.Env, obs: np.ndarray) -> tuple[float, float] | None:
    """The position on a plane, in environments that have one."""
    inner = env.unwrapped
    if hasattr(inner, "point_env"):  # Gymnasium-Robotics' PointMaze
        x, y = inner.point_env.data.qpos[:2]  # pyright: ignore
    elif isinstance(inner, AntMaze) or np.shape(obs) == (2,):
        x, y = obs[:2]
    else:
        return None
    return float(x), float(y)


def goal_of(env: gymnasium.Env) -> list[float] | None:
    """The position of the episode's goal, in environments that have one."""
    goal = np.asarray(getattr(env.unwrapped, "goal", ()), float)
    return goal.tolist() if goal.shape == (2,) and np.isfinite(goal).all() else None


def maze_map(env: gymnasium.Env) -> dict[str, Any] | None:
    """The centres of the square walls of a maze, and their size; None for other environments."""
    inner: Any = env.unwrapped
    if isinstance(inner, AntMaze):
        return {"walls": [centre(cell).tolist() for cell in cells(inner.maze, "#")], "cell": CELL}
    maze: Any = getattr(inner, "maze", None)
    if not hasattr(maze, "maze_map"):
        return None
    size, left, top = float(maze.maze_size_scaling), float(maze.x_map_center), float(maze.y_map_center)
    walls = [(i, j) for i, row in enumerate(maze.maze_map) for j, kind in enumerate(row) if kind == 1]
    return {"walls": [[(j + 0.5) * size - left, top - (i + 0.5) * size] for i, j in walls], "cell": size}
