"""The value of a trial's policies by the log alone, for sweeps on data without an environment."""

from edp.acting.actors import Actors
from edp.acting.judge import Judge, JudgeOptions, judgement_row
from edp.errors import UserError
from edp.runs.directory import Run
from edp.training.prepare import Ready


class OfflineValues:
    """Judges the policies of a run while it trains, as ``edp eval --offline`` does afterwards."""

    def __init__(self, ready: Ready):
        self.experiment, self.options = ready.experiment, JudgeOptions()
        if not ready.dataset.reward.any():
            raise UserError(f"{ready.run.folder}: all rewards of its log are 0, so that nothing is better or worse")
        self.judge_policies = Judge(ready.dataset, self.options)

    def judge(self, run: Run, due: list[int]) -> None:
        """Judge the current policies, if a rung or the end was reached at this step, and write the row into the run."""
        spec, step = self.experiment.spec, self.experiment.step
        known = {row["step"] for row in run.validations()}
        first = {min((each for each in known if each >= rung), default=None) for rung in due}
        if step not in first or step in {row["step"] for row in run.offline()}:
            return
        failed = [seed - spec.training.seed for seed in self.experiment.failed]
        judgement = self.judge_policies(Actors.from_states(spec, spec.evaluation, self.experiment.states), failed)
        run.log_offline(judgement_row(step, judgement, judgement, spec.evaluation, self.options))
