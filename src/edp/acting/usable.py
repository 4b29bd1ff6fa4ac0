"""Signs that a policy cannot be used, from its actions in held-out states and from the learned values."""

from collections.abc import Mapping

import numpy as np

SHUFFLED = 1.1  # actions farther from the log's than this many times the log's own actions in a random order
AT_LIMIT = 0.98  # of the range of an action, from its middle
MORE_AT_LIMIT = 0.3  # more of the actions at their limits than in the log, as a share of all
BEYOND = 1.5  # times the largest value that the rewards allow


def shuffled_distance(action: np.ndarray) -> float:
    """How far the actions of a log are from themselves in a random order, in standard deviations."""
    mixed = action[np.random.default_rng(0).permutation(len(action))]
    return action_distance(mixed, action)


def action_distance(chosen: np.ndarray, action: np.ndarray) -> float:
    """The distance of actions from those of a log in the same states, in standard deviations of the latter."""
    return float(np.sqrt((((chosen - action) / (action.std(axis=0) + 1e-6)) ** 2).mean()))


def action_faults(chosen: np.ndarray, action: np.ndarray) -> list[str]:
    """What is wrong with a policy's actions, beside those of the log in the same states; both are within -1 and 1."""
    if not np.isfinite(chosen).all():
        return ["its actions are not finite"]
    faults, far, random = [], action_distance(chosen, action), shuffled_distance(action)
    if far > SHUFFLED * random:
        faults.append(
            f"its actions are farther from the log's ({far:.2f} std) than random ones of it ({random:.2f} std)"
        )
    share, usual = (float((np.abs(each) > AT_LIMIT).mean()) for each in (chosen, action))
    if share > usual + MORE_AT_LIMIT:
        faults.append(f"{share:.0%} of its actions are at their limits, and {usual:.0%} of the log's")
    return faults


def value_faults(metrics: Mapping[str, float], largest_reward: float, discount: float) -> list[str]:
    """Whether learned values are larger than any return can be. ``metrics`` are those of an update."""
    if not largest_reward or discount == 1:
        return []
    most = largest_reward / (1 - discount)
    for name in ("q_policy", "q_data"):
        value = metrics.get(name, 0.0)
        if not abs(value) <= BEYOND * most:
            return [f"its values ran away ({name} {value:.3g}; with these rewards none can be beyond ±{most:.3g})"]
    return []
