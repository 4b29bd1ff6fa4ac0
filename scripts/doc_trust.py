"""Tables of verdicts on policies (docs/evaluation.md) and of faults (docs/reliability.md)."""

from doc_results import prose, result
from recipe_runs import table


def verdicts() -> str:
    logs = result("verdicts")
    names = [row["name"] for row in sorted(logs[0]["policies"], key=lambda row: -row["truth"])]
    cells = []
    for name in names:
        found = [row for log in logs for row in log["policies"] if row["name"] == name]
        truths = [row["truth"] for row in found]
        said = [str(sum(row["word"] == word for row in found) or "") for word in ("better", "cannot tell", "worse")]
        cells.append([name, f"{min(truths):+.3f} to {max(truths):+.3f}", *said])
    right, unsure, wrong = (sum(log[word] for log in logs) for word in ("right", "cannot tell", "wrong"))
    ranks = {key: [log[f"rank_correlation{key}"] for log in logs] for key in ("", "_fitted_q")}
    spans = {key: f"{min(each):.2f} to {max(each):.2f}" for key, each in ranks.items()}
    head = ["policy", "policy - operators in the simulator, € per step", "said: better", "cannot tell", "worse"]
    text = prose(f"""
        Over {len(logs)} logs and {right + unsure + wrong} policies, {right} answers are right, {unsure} are "cannot
        tell", and {wrong} are wrong. The rank correlation of the difference by replays with the simulator is
        {spans[""]}; that of fitted Q alone is {spans["_fitted_q"]}.
        """)
    return f"{table(head, cells)}\n\n{text}"


def faults() -> str:
    found = result("faults")
    names = ("tried", "noticed", "harmless", "tracebacks", "hangs", "crashes", "silently_wrong")
    texts = {"damages": "damaged run directories", "fuzz": "malformed inputs"}
    rows = [[text, *(f"{found[part][name]:,}" for name in names)] for part, text in texts.items()]
    kills = found["kills"]
    text = prose(f"""
        {kills["tried"]:,} kills in {kills["runs"]:,} runs: {kills["identical"]:,} runs ended with the same bytes as an
        uninterrupted one, {kills["different"]:,} did not, and {kills["tracebacks"]:,} printed a traceback.
        """)
    return f"{table(['', *(name.replace('_', ' ') for name in names)], rows)}\n\n{text}"
