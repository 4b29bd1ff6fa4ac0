"""Names and ranges of what a policy sees and sets, and how often it acts."""

from edp.acting.policy import LoadedPolicy
from edp.data.formats.times import parse_duration
from edp.data.log import Log
from edp.data.signals import Encoding, Signals, name_signals
from edp.errors import UserError


def read_signals(policy: LoadedPolicy, log: Log | None = None) -> Signals:
    """What the run says; for runs of older versions, what its data says."""
    if policy.spec.signals or log is None:
        return policy.signals
    return name_signals(log.observation_names, log.action_names, Encoding(), policy.dims)


def control_period(policy: LoadedPolicy) -> float | None:
    """The seconds between rows of the training data, if rows were averaged over a given time."""
    columns = policy.origin.run.config.get("columns") if policy.origin else None
    try:
        return parse_duration(str(columns.get("every") or ""), "every") or None if isinstance(columns, dict) else None
    except UserError:
        return None
