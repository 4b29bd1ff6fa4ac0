"""Early stopping by asynchronous successive halving (ASHA, Li et al. 2020), with all decisions on disk."""

import math

from edp.runs.rows import finite_or_none
from edp.runs.sweep import Sweep, Trial


class Halving:
    """Decides which trials stop early. ``first`` and ``factor`` are those of ``StoppingOptions``.

    Trials are compared at rungs: after ``first`` · ``factor``^k steps. One that reaches a rung goes on if it is among
    the best 1/``factor`` of all trials on the same data that have reached it so far, itself included. The first one
    goes on, and so does one that is as good as the worst of the best: at the start of a task with sparse rewards, all
    scores are 0.
    """

    def __init__(self, sweep: Sweep, first: int, factor: int):
        self.sweep, self.first, self.factor = sweep, first, factor

    def rungs(self, steps: int) -> list[int]:
        """The rungs of a run of so many steps. At its end there is nothing to decide."""
        if not self.first:
            return []
        count = math.ceil(math.log(steps / self.first, self.factor) - 1e-9) if steps > self.first else 0
        return [self.first * self.factor**number for number in range(count)]

    def stops(self, trial: Trial, curve: dict[int, float], steps: int) -> bool:
        """Whether the trial stops, given its values by step. Decisions are kept, and a second call gives the same."""
        due = [rung for rung in self.rungs(steps) if any(step >= rung for step in curve)]
        if not due or trial.again is not None:
            return False
        with self.sweep.deciding():
            rows = self.sweep.rungs()
            rivals = {
                each.number for each in self.sweep.trials() if self.sweep.data_of(each) == self.sweep.data_of(trial)
            }
            for rung in due:
                own = next((row for row in rows if row["number"] == trial.number and row["rung"] == rung), None)
                if own is None:
                    step = min(step for step in curve if step >= rung)
                    value = self.sweep.sign * curve[step]
                    others = [
                        number_of(row["value"]) for row in rows if row["rung"] == rung and row["number"] in rivals
                    ]
                    stops = not is_among_best(number_of(value), others, self.factor)
                    kept = finite_or_none([value])[0]
                    own = {"number": trial.number, "rung": rung, "step": step, "value": kept, "stops": stops}
                    self.sweep.add_rung(own)
                    rows.append(own)
                if own["stops"]:
                    return True
        return False


def is_among_best(value: float, others: list[float], factor: int) -> bool:
    """Whether a value is among the best 1/``factor`` of itself and the others; at least one is."""
    places = max(1, (len(others) + 1) // factor)
    return sum(other > value for other in others) < places


def number_of(value: float | None) -> float:
    """The value for comparisons, in which a trial without one is the worst."""
    return -math.inf if value is None or math.isnan(value) else float(value)
