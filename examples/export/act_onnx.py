"""Act with an exported policy: NumPy and onnxruntime are all that is needed.

    edp export runs/mine policy.onnx
    python act_onnx.py policy.onnx

The class below is all of it: copy it. The rest checks the example of the contract, and measures the time of an action.
"""

import argparse
import json
import time
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
        return actions if observation.ndim == 2 else actions[0]


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
    action, times = policy.act(observation), []
    for _ in range(values.actions):
        start = time.perf_counter()
        policy.act(observation)
        times.append(time.perf_counter() - start)
    for entry, number in zip(contract["actions"], action, strict=True):
        print(f"{entry['name']}: {number:.4g}")
    print(f"an action takes {1000 * np.median(times):.2f} ms")


if __name__ == "__main__":
    main()
