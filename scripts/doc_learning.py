"""Tables about single runs of learning, critics and selection (docs/recipe.md)."""

import json
import statistics
from typing import Any

from doc_results import ROOT, result
from recipe_runs import table

LEARNING = {  # runs in results/learning, in the order of the page
    "kc-bc-sig": "kitchen-complete, cloning, lr 3e-4",
    "kc-bc-raw-cos": "kitchen-complete, cloning, lr 1e-3 with decay, raw observations (stopped)",
    "kc-bc-sig-cos": "kitchen-complete, cloning, lr 1e-3 with decay, `signal`",
    "kc-iql": "kitchen-complete, IQL, weighted diffusion loss, no EAS",
    "kc-iql-paper": "kitchen-complete, IQL, the paper's settings (`--preset edp`)",
    "kcb-v": "kitchen-complete, cloning, an earlier recipe, decay over 20k steps",
    "recipe-kc-td3": "kitchen-complete, TD3, `slope` with weight 0.2, EAS (stopped)",
    "wkc05": "kitchen-complete, TD3, `slope` with weight 0.05, no EAS (stopped)",
    "kc-tilt05": "kitchen-complete, TD3, `spread` with weight 0.5, no EAS (stopped)",
    "kc-tilt02": "kitchen-complete, TD3, `spread` with weight 0.2, no EAS",
    "kc-crr1": "kitchen-complete, CRR, an earlier recipe (`--beta 1`), decay over 12k steps",
    "hm-td3-norm-w01": "hopper-medium, TD3, lr 3e-4, tau 0.005, one-step targets, EAS by exp(Q)",
    "hm-cos": "hopper-medium, TD3, lr 1e-3 with decay, layer norm, no EAS",
    "hm-cos-slope": "… guidance by slopes (stopped)",
    "hm-v-slope2": "… guidance by slopes, v prediction",
    "hm-v2-tau-n3": "… and tau 0.02, three-step targets",
    "whm05": "… and EAS, `slope` with weight 0.05 (stopped)",
    "recipe-hm-td3": "… and EAS, `slope` with weight 0.2",
    "hm-tilt05": "hopper-medium, TD3, `spread` with weight 0.5, EAS: an earlier recipe",
    "hm-b128": "the same with batches of 128",
    "hm-w1": "an earlier recipe with `--loss-weight 1`, decay over 10k steps",
    "hm-iql": "hopper-medium, IQL, an earlier recipe",
    "hc-tilt05": "halfcheetah-medium, TD3, an earlier recipe",
    "hc-w1": "the same with `--loss-weight 1`, decay over 10k steps",
    "pen-tilt05": "pen-cloned, TD3, an earlier recipe",
    "ant-tilt05": "antmaze-umaze (earlier look-alike), TD3, EAS",
    "ant-eas": "antmaze-umaze, TD3, EAS from 6,734 steps on (stopped)",
}

SHOWN_STEPS = (5, 10, 15, 20, 25, 30, 40, 50)


def learning_rows(name: str) -> list[dict]:
    lines = (ROOT / "results" / "learning" / name / "evaluations.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["kind"] == "training"]


def curves() -> str:
    """Mean scores over seeds, at the evaluation nearest to each of these steps (within a thousand)."""
    rows = []
    for name, text in LEARNING.items():
        found = {row["step"]: row["scores"] for row in learning_rows(name)}
        cells = [text, str(len(next(iter(found.values()))))]
        for thousands in SHOWN_STEPS:
            near = [step for step in found if abs(step - 1000 * thousands) <= 1000]
            step = min(near, key=lambda step: abs(step - 1000 * thousands), default=None)
            cells.append("" if step is None else f"{mean_score(found[step]):.1f}")
        last = max(found)
        rows.append([*cells, f"{mean_score(found[last]):.1f} ({last:,})"])
    return table(["run", "seeds", *(f"{thousands}k" for thousands in SHOWN_STEPS), "last (step)"], rows)


def mean_score(scores: list[list[float]]) -> float:
    """The mean over seeds, given the episodes of each."""
    return statistics.mean(statistics.mean(row) for row in scores)


def critics() -> str:
    head = ["run", "step", "mean Q", "mean return", "std of return - Q", "slope", "agreement of the critics"]
    shown = [row for row in result("critics") if row["step"] in (5000, 10_000, 20_000, 30_000)]
    names = ("q", "return", "error", "slope", "agreement")
    cells = [[row["run"], f"{row['step']:,}", *(f"{row[name]:.2f}" for name in names)] for row in shown]
    return table(head, cells)


def selection() -> str:
    found = {(row["run"], row["step"], row["way"]): row for row in result("selection")}
    ways = list(dict.fromkeys(way for _, _, way in found))
    places = list(dict.fromkeys((run, step) for run, step, _ in found))
    cells = [
        [
            run,
            f"{step:,}",
            *(f"{statistics.mean(row['seeds']):.1f}" if (row := found.get((run, step, way))) else "" for way in ways),
        ]
        for run, step in places
    ]
    return table(["run", "step", *ways], cells)


WAY_OF_RECIPE = "relative-0.2"  # from EAS_AFTER steps on, if data is not narrow and rewards are not sparse
EAS_AFTER = {"td3bc": 7000, "iql": 10_000}
RECIPE_RUNS = ("hm-td3-30k", "hm-iql", "hc-tilt05", "hc-td3", "hc-iql", "pen-tilt05", "hme-td3")


def selection_of_recipe() -> str:
    """The recipe's selection against one sample, on checkpoints from early to late."""
    found = {(row["run"], row["step"], row["way"]): row for row in result("selection")}
    cells = []
    for run, step, way in found:
        if run not in RECIPE_RUNS or way != "none" or (run, step, WAY_OF_RECIPE) not in found:
            continue
        none, with_eas = found[run, step, "none"], found[run, step, WAY_OF_RECIPE]
        gains = [more - less for more, less in zip(with_eas["seeds"], none["seeds"], strict=True)]
        shown = ", ".join(f"{gain:+.1f}" for gain in gains)
        means = [f"{statistics.mean(row['seeds']):.1f}" for row in (none, with_eas)]
        default = "EAS" if step >= EAS_AFTER[none["algorithm"]] else "one sample"
        cells.append([none["task"], none["algorithm"].upper(), f"{step:,}", *means, shown, default])
    order = list(dict.fromkeys(row[0] for row in cells))
    cells.sort(key=lambda row: (order.index(row[0]), row[1], int(row[2].replace(",", ""))))
    head = ["look-alike", "algorithm", "step", "one sample", "EAS", "gain of each seed", "the default"]
    return table(head, cells)


NARROW = {  # runs of 12,000 steps on kitchen-mixed, in results/learning
    "km-bc": "cloning",
    "km-td3": "TD3+BC, `--loss-weight 0.5 --eas 10`: the values for other data",
    "km-weak": "TD3+BC, `--loss-weight 0.1 --eas 1`: the values for narrow data (with noise)",
}


def narrow() -> str:
    """The last evaluation of each run."""
    rows = []
    for name, text in NARROW.items():
        last = learning_rows(name)[-1]
        seeds = [statistics.mean(scores) for scores in last["scores"]]
        shown = ", ".join(f"{seed:.1f}" for seed in seeds)
        rows.append([text, f"{last['step']:,}", f"{statistics.mean(seeds):.1f} ({shown})"])
    return table(["kitchen-mixed-v0 (look-alike)", "steps", "score (seeds)"], rows)


def noise_shares() -> str:
    rows = sorted(result("noise_share"), key=lambda row: row["noise_share"])
    mark = {True: " (look-alike)", False: ""}
    cells = [
        [row["task"] + mark[row["regenerated"]], f"{row['rows']:,}", f"{row['noise_share']:.2f}", changes(row)]
        for row in rows
    ]
    return table(["data", "rows", "share of noise", "steps with a new reward"], cells)


def changes(row: dict[str, Any]) -> str:
    return f"{row['reward_changes']:.1%}" if "reward_changes" in row else ""
