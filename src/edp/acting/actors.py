"""The policies and critics of a run that act, and how they select actions."""

from typing import Any, NamedTuple

import jax
import numpy as np

from edp.acting.selection import Selection, acting_models, selection_of
from edp.config.spec import EvalOptions, Spec, acting_sampler


class Actors(NamedTuple):
    """Policies and critics, usually stacked over seeds, and their selection of actions."""

    policies: Any
    critics: Any  # None if the algorithm has none
    selection: Selection = Selection()

    @classmethod
    def from_states(cls, spec: Spec, options: EvalOptions, states: Any) -> "Actors":
        """The actors of training states. Refuses options that the policy or the algorithm does not allow."""
        sampler = acting_sampler(spec.algorithm, spec.policy, options)
        selection = selection_of(options.at(training_step(states)))
        return cls(*acting_models(states, options.act_with, sampler), selection)


def training_step(states: Any) -> int:
    """The number of training steps behind these states, which is the same for all seeds."""
    step = states.step.addressable_data(0) if isinstance(states.step, jax.Array) else states.step
    return int(np.ravel(step)[0])
