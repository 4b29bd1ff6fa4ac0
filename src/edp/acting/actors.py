"""The policies and critics of a run that act, and how they select actions."""

from typing import Any, NamedTuple

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
        return cls(*acting_models(states, options.act_with, sampler), selection_of(options))
