"""Act with an exported policy: NumPy and onnxruntime are all that is needed.

    edp export runs/mine policy.onnx
    python act_onnx.py policy.onnx

Copy the class ``Policy``; for a control loop with limits, also ``Loop``. The rest checks the example of the contract,
and measures the time of an action.
"""

import argparse
import json
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime


class Policy:
    """A policy exported by ``edp export``. Random numbers that the model asks for are drawn here."""

    def __init__(self, path: str | Path, seed: int | None = None):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # the networks are small: more threads only wait for each other
        self.session = onnxruntime.InferenceSession(str(path), options)
        self.shapes = {given.name: given.shape[1:] for given in self.session.get_inputs()}
        self.rng = np.random.default_rng(seed)

    def act(self, observation) -> np.ndarray:
        """The action for an observation, or an action for each row of a batch, in the units of the data."""
        observation = np.asarray(observation, np.float32)
        rows = np.atleast_2d(observation)
        if not np.isfinite(rows).all():
            raise ValueError("the observation has NaN or Inf: fill it in, or do not act on it")
        inputs = {"observation": rows}
        if "noise" in self.shapes:
            inputs["noise"] = self.rng.standard_normal((len(rows), *self.shapes["noise"]), np.float32)
        if "gumbel" in self.shapes:
            inputs["gumbel"] = self.rng.gumbel(size=(len(rows), *self.shapes["gumbel"])).astype(np.float32)
        (actions,) = map(np.asarray, self.session.run(None, inputs))
        if not np.isfinite(actions).all():
            raise ValueError("the action has NaN or Inf: the observation is too far from the training data")
        return actions if observation.ndim == 2 else actions[0]


class Loop:
    """A policy in a control loop, as `control` of the contract asks.

    Observations are checked against the ranges of the training data, the fallback is given if there is no action at the
    deadline, and changes from one action to the next are limited. It is for one plant, and for one thread.
    """

    def __init__(self, policy: Policy, contract: dict):
        self.policy, self.calls, self.misses = policy, 0, 0
        control, sides = contract["control"], ("low", "high")
        self.outside, self.deadline_ms, self.fallback = control["outside"], control["deadline_ms"], control["fallback"]
        self.names = [each["name"] for each in contract["observations"]]
        low, high = (np.array([each[side] for each in contract["observations"]], float) for side in sides)  # None: NaN
        slack = control["margin"] * (high - low) + 1e-6 * np.maximum(abs(low), abs(high))
        self.lowest, self.highest = low - slack, high + slack
        self.low, self.high = (np.array([each[side] for each in contract["actions"]], np.float32) for side in sides)
        limits = control["max_change"] or [None] * len(self.low)
        self.max_change = np.array([np.inf if limit is None else limit for limit in limits], np.float32)
        self.last: np.ndarray | None = None  # action
        self.thread, self.running = ThreadPoolExecutor(1), None

    def act(self, observation) -> np.ndarray:
        """The action for an observation, in the units of the data."""
        start = time.perf_counter()
        self.calls += 1
        observation = np.asarray(observation, np.float32)
        beyond = (observation < self.lowest) | (observation > self.highest) | np.isnan(observation)
        hold = beyond.any() and self.outside == "hold"
        if beyond.any() and self.outside != "ignore":
            message = f"outside of the training data: {self.names[beyond.argmax()]} is {observation[beyond.argmax()]:g}"
            if self.outside == "refuse" or (hold and self.last is None):
                raise ValueError(message)
            warnings.warn(message, stacklevel=2)
        action = self.hold() if hold else self.act_in_time(observation, start)
        if self.last is not None:
            action = np.clip(action, self.last - self.max_change, self.last + self.max_change)
        self.last = np.clip(action, self.low, self.high)
        return self.last.copy()

    def act_in_time(self, observation: np.ndarray, start: float) -> np.ndarray:
        """The policy's action, or the fallback at the deadline. What is late goes on; the next call waits for it."""
        if not self.deadline_ms:
            return self.policy.act(observation)
        remaining = lambda: max(0.0, start + self.deadline_ms / 1000 - time.perf_counter())  # noqa: E731
        try:
            if self.running:
                self.running.exception(remaining())
            self.running = self.thread.submit(self.policy.act, observation)
            return self.running.result(remaining())
        except TimeoutError:
            self.misses += 1
            return self.hold() if self.fallback == "hold" else np.array(self.fallback, np.float32)

    def hold(self) -> np.ndarray:
        if self.last is None:
            raise ValueError("there is no earlier action to hold")
        return self.last


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--actions", type=int, default=200, help="how many actions to time")
    values = parser.parse_args()
    contract = json.loads(values.model.with_suffix(".json").read_text(encoding="utf-8"))
    policy, example = Policy(values.model), contract["example"]
    if example:
        inputs = {name: np.array(example[name], np.float32) for name in policy.shapes}
        (action,) = map(np.asarray, policy.session.run(None, inputs))
        ranges = np.array([each["high"] - each["low"] for each in contract["actions"]])
        difference = float((np.abs(action - example["action"]) / ranges).max())
        print(f"the contract's example: differs by {difference:.1e} of the action's range")
        observation = inputs["observation"][0]
    else:
        observation = np.array([each["shift"] for each in contract["observations"]], np.float32)
    loop, times = Loop(policy, contract), []
    action = loop.act(observation)
    for _ in range(values.actions):
        start = time.perf_counter()
        loop.act(observation)
        times.append(time.perf_counter() - start)
    for entry, number in zip(contract["actions"], action, strict=True):
        print(f"{entry['name']}: {number:.4g}")
    late = f"; {loop.misses} of {loop.calls} were late" if loop.deadline_ms else ""
    print(f"an action takes {1000 * np.median(times):.2f} ms{late}")


if __name__ == "__main__":
    main()
