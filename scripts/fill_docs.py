"""Write the numbers of results/ into the documentation.

    python scripts/fill_docs.py [--check]

A part of a document between ``<!-- numbers: NAME -->`` and ``<!-- end -->`` is written here from what benchmarks wrote
down; a test fails where they differ.
"""

import argparse
import json
import re
import statistics
import sys
import textwrap
from pathlib import Path
from typing import Any

from lever_runs import baselines, initial_noise, later, levers
from recipe_runs import recipe_commands, recipe_scores, recipe_times, table

ROOT = Path(__file__).parent.parent
DOCUMENTS = (
    "README.md",
    "docs/evaluation.md",
    "docs/performance.md",
    "docs/recipe.md",
    "docs/reliability.md",
    "docs/results.md",
)
MARKED = re.compile(r"(<!-- numbers: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def result(name: str) -> dict:
    return json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))


def rows_of(found: dict, what: str = "training") -> dict[str, dict]:
    return {row["name"]: row for row in found["variants"] if row["what"] == what}


def rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 20 else f"{value:.1f}"


def spread(values: list[float], digits: int = 1) -> str:
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def machine() -> str:
    about = result("bench")["about"]
    return f"{about['cores']} cores of a shared {about['processor']} with JAX {about['jax']}"


def prose(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 130, break_on_hyphens=False, break_long_words=False)


def about() -> str:
    return prose(f"""
        All numbers here were measured on {machine()}, whose speed varies by a factor of two within minutes, unless
        stated otherwise. So only ratios measured in alternation in one process are meaningful. Medians and
        spreads are in `results/`, and this page is filled from there (`python scripts/fill_docs.py`).
        """)


def gemms(found: dict) -> str:
    return f"256³ ran at {found['gemm_gflops']:.0f} GFLOP/s, 1024³ at {found['large_gemm_gflops']:.0f}"


def bench() -> str:
    found = result("bench")
    train, act = rows_of(found), rows_of(found, "acting")
    head = [
        "variant",
        "training steps/s",
        "× `dql`",
        "GFLOP per step",
        "share of 256³",
        "share of 1024³",
        "compiled in",
    ]
    rows = [
        [
            f"`{name}`",
            rate(row["steps_per_second"]),
            f"{row['times_first']:.1f}",
            f"{row['gflop_per_step']:.3g}",
            f"{row['share_of_gemm']:.0%}",
            f"{row['share_of_large_gemm']:.0%}",
            f"{row['compile_seconds']:.1f} s",
            rate(act[name]["steps_per_second"]),
        ]
        for name, row in train.items()
    ]
    costs = {name: statistics.median(paired(train["feed-forward"], train[name])) for name in ("edp", "edp, fast")}
    text = prose(f"""
        ({gemms(found)}.) A step of `edp` costs {costs["edp"]:.2f} times one of feed-forward TD3+BC, with the `fast`
        preset {costs["edp, fast"]:.2f} times, and is {train["edp"]["times_first"]:.1f} times as fast as Diffusion-QL
        with K = 100 (the same code, with gradients through the chain).
        """)
    return f"{table([*head, 'environment steps/s'], rows)}\n\n{text}"


def paired(one: dict, other: dict) -> list[float]:
    """How much faster one is than the other, round by round."""
    return [a / b for a, b in zip(one["rounds"], other["rounds"], strict=True)]


def steps() -> str:
    found = result("train_step")
    rows = rows_of(found)
    first = rows["td3bc + diffusion"]
    shown = ["td3bc + diffusion", *(name for name in rows if name.startswith("td3bc, "))]
    head = ["case", "GFLOP per step", "steps/s", "time of a step against the first row's", "share of 256³", "of 1024³"]
    times = {name: statistics.median(paired(first, rows[name])) for name in shown}
    cells = [
        [
            name,
            f"{rows[name]['gflop_per_step']:.2f}",
            rate(rows[name]["steps_per_second"]),
            f"{times[name]:.2f}",
            f"{rows[name]['share_of_gemm']:.0%}",
            f"{rows[name]['share_of_large_gemm']:.0%}",
        ]
        for name in shown
    ]
    same = [times[name] for name in shown if "K =" in name or "rows" in name]
    text = prose(f"""
        ({gemms(found)}.) Neither K nor the size of the data set changes the work of a step: the times of those rows
        differ from the first one's by factors of {min(same):.2f} to {max(same):.2f}, which is measurement noise. Five
        seeds in one program cost {times["td3bc, 5 seeds"]:.1f} times one seed. On a CPU they run one after the
        other, because batches of small matrix products are slow there; on accelerators they are one batch.
        """)
    return f"{table(head, cells)}\n\n{text}"


def pairs() -> str:
    return table_of_pairs(rows_of(result("train_step")))


def later_pairs() -> str:
    """Policies and algorithms that came after EDP, measured in one run with EDP and feed-forward TD3+BC."""
    found = result("train_step_later")
    rows = rows_of(found)
    edp, flow, plain = (rows[f"td3bc + {name}"] for name in ("diffusion", "meanflow", "deterministic"))
    slower = [statistics.median(paired(other, flow)) for other in (edp, plain)]
    text = prose(f"""
        ({gemms(found)}.) A step of TD3+BC with `meanflow` takes {slower[0]:.2f} of the time of EDP's, and
        {slower[1]:.2f} of that of a feed-forward policy's.
        """)
    return f"{table_of_pairs(rows)}\n\n{text}"


def table_of_pairs(found: dict) -> str:
    rows = {tuple(name.split(" + ")): row for name, row in found.items() if " + " in name}
    policies, algorithms = (list(dict.fromkeys(key[i] for key in rows)) for i in (1, 0))
    cells = [
        [algorithm, *(shown(rows[algorithm, policy]) if (algorithm, policy) in rows else "" for policy in policies)]
        for algorithm in algorithms
    ]
    return table(["steps/s (share of 256³)", *policies], cells)


def shown(row: dict) -> str:
    return f"{rate(row['steps_per_second'])} ({row['share_of_gemm']:.0%})"


def elsewhere() -> str:
    before, after, start = (result(f"xeon/{name}") for name in ("bench", "steps", "startup"))
    shares = ", ".join(f"{name} {shown(row)}" for name, row in rows_of(after).items())
    speed = {name: row["steps_per_second"] for name, row in rows_of(before).items()}
    act = result("xeon/act")["variants"]["15 calls, EAS of 10"]["ratio"]
    return prose(f"""
        On two cores of a 2.8 GHz Xeon with AVX-512 (`results/xeon/`, made a few changes earlier), where products of
        256³ ran at {before["gemm_gflops"]:.0f} GFLOP/s: {shares}; `edp` {speed["edp"] / speed["dql"]:.1f} times as
        fast as `dql`, at {speed["feed-forward"] / speed["edp"]:.2f} times the cost of feed-forward, `fast` at
        {speed["feed-forward"] / speed["edp, fast"]:.2f} times; acting with EAS at {act:.1f} times its FLOPs; the first
        step after {statistics.median(start["warm_seconds"]):.1f} s.
        """)


SHOWN_SOLVERS = (
    *("dpm-3, uniform", "dpm-3, quadratic", "dpm-3, logsnr", "dpm-2, uniform", "dpm-1, uniform", "dpm-1, quadratic"),
    *("dpm++, uniform", "dpm++, quadratic", "dpm++, logsnr"),
    *("dpm++, quadratic, no threshold", "dpm++, logsnr, no threshold"),
)
SHOWN_CALLS = (4, 5, 6, 7, 8, 10, 15)


def solvers() -> str:
    """Bold: no policy is significantly further from the chain than with the paper's solver (95 %)."""
    policies = result("solvers")["policies"]
    names = ", ".join(sorted({f"{policy['algorithm']} on {policy['task']}" for policy in policies}))
    found: dict[tuple[str, int], list[dict]] = {}
    for policy in policies:
        for row in policy["solvers"]:
            found.setdefault((row["solver"], row["calls"]), []).append(row)

    def cell(rows: list[dict]) -> str:
        text = f"{1000 * statistics.mean(row['mmd'] for row in rows):.1f}"
        gaps = [row[name] for row in rows for name in ("mmd_minus_paper", "q_gap_minus_paper")]
        return f"**{text}**" if all(mean <= 1.96 * error for mean, error in gaps) else text

    cells = [[solver, *(cell(found[solver, calls]) for calls in SHOWN_CALLS)] for solver in SHOWN_SOLVERS]
    text = prose(f"""
        Means over {len(policies)} policies ({names}); **bold** where no policy is significantly further from the chain
        than with the paper's 15 calls, neither in actions nor in Q (95 %). A second chain:
        {cell(found["ddpm, uniform", 1000]).strip("*")}.
        """)
    return f"{table(['MMD² × 1000 at … calls', *map(str, SHOWN_CALLS)], cells)}\n\n{text}"


def startup() -> str:
    found = result("startup")
    return prose(f"""
        `python benchmarks/startup.py` (`results/startup.json`): `edp train` on 100,000 transitions reaches its first
        training step after {spread(found["warm_seconds"])} seconds when its programs are in the cache
        (`~/.cache/edp/compiled`, or `$EDP_CACHE`), and after {found["cold_seconds"]:.0f} s the first time.
        """)


def memory() -> str:
    found = result("memory")
    size = found["bytes"]
    return prose(f"""
        `python benchmarks/memory.py` (`results/memory.json`): an epoch of TD3+BC needs the data set and
        {size["states_beside_data"]:.1f} times the training state ({size["data"] / 1e6:.0f} MB and
        {size["state"] / 1e6:.1f} MB for 5 million transitions), as reported by the compiled program. Streamed in
        blocks (below), an epoch takes {spread(found["streaming"]["ratio"], 2)} of the time of one whose data is on the
        device.
        """)


def fast() -> str:
    found = result("fast")
    rows = {(row["task"], row["preset"]): row for row in found["rows"]}
    names = list(dict.fromkeys(row["task"] for row in found["rows"]))
    cell = lambda seeds: f"{statistics.mean(seeds):.1f} ({', '.join(f'{seed:.1f}' for seed in seeds)})"  # noqa: E731
    cells = [[name, *(cell(rows[name, preset]["seeds"]) for preset in ("edp", "fast"))] for name in names]
    low, high = found["interval"]
    text = prose(f"""
        Six calls instead of fifteen make a difference of {found["difference"]:+.1f} (95 % interval {low:+.1f} to
        {high:+.1f}, over all pairs of seeds).
        """)
    return f"{table(['task', '`--preset edp`, 15 calls', '`--preset fast`, 6 calls'], cells)}\n\n{text}"


LEARNING = {  # runs in results/learning, in the order of the page
    "kc-bc-sig": "kitchen-complete, cloning, lr 3e-4",
    "kc-bc-raw-cos": "kitchen-complete, cloning, lr 1e-3 with decay, raw observations (stopped)",
    "kc-bc-sig-cos": "kitchen-complete, cloning, lr 1e-3 with decay, `signal`",
    "kc-iql": "kitchen-complete, IQL, weighted diffusion loss, no EAS",
    "kcb-v": "kitchen-complete, cloning, the recipe, decay over 20k steps",
    "recipe-kc-td3": "kitchen-complete, TD3, `slope` with weight 0.2, EAS (stopped)",
    "wkc05": "kitchen-complete, TD3, `slope` with weight 0.05, no EAS (stopped)",
    "kc-tilt05": "kitchen-complete, TD3, `spread` with weight 0.5, no EAS (stopped)",
    "kc-tilt02": "kitchen-complete, TD3, `spread` with weight 0.2, no EAS",
    "kc-crr1": "kitchen-complete, CRR, the recipe, decay over 12k steps",
    "hm-td3-norm-w01": "hopper-medium, TD3, lr 3e-4, tau 0.005, one-step targets, EAS by exp(Q)",
    "hm-cos": "hopper-medium, TD3, lr 1e-3 with decay, layer norm, no EAS",
    "hm-cos-slope": "… guidance by slopes (stopped)",
    "hm-v-slope2": "… guidance by slopes, v prediction",
    "hm-v2-tau-n3": "… and tau 0.02, three-step targets",
    "whm05": "… and EAS, `slope` with weight 0.05 (stopped)",
    "recipe-hm-td3": "… and EAS, `slope` with weight 0.2",
    "hm-tilt05": "hopper-medium, TD3, `spread` with weight 0.5, EAS: **the recipe**",
    "hm-b128": "the same with batches of 128",
    "hm-w1": "the recipe with `--loss-weight 1`, decay over 10k steps",
    "hm-iql": "hopper-medium, IQL, the recipe",
    "hc-tilt05": "halfcheetah-medium, TD3, the recipe",
    "hc-w1": "the same with `--loss-weight 1`, decay over 10k steps",
    "pen-tilt05": "pen-cloned, TD3, the recipe",
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
            cells.append("" if step is None else f"{statistics.mean(statistics.mean(row) for row in found[step]):.1f}")
        rows.append(cells)
    return table(["run", "seeds", *(f"{thousands}k" for thousands in SHOWN_STEPS)], rows)


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


NARROW = {  # runs of 12,000 steps on kitchen-mixed, in results/learning
    "km-bc": "cloning",
    "km-td3": "TD3+BC, `--loss-weight 0.5 --eas 10`: the values for other data",
    "km-weak": "TD3+BC, `--loss-weight 0.1 --eas 1`: **the recipe for narrow data**",
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


READERS = {
    "pyarrow, streaming": "pyarrow's `iter_batches`, nothing kept: it reads the file ahead",
    "pyarrow, streaming without buffer": "the same without reading ahead, nothing kept",
    "edp": "`edp`: transitions in files, as with `--block`",
}


def tables() -> str:
    found = result("tables")
    rows = [
        [text, f"{found[name]['megabytes_per_second']:,}", f"{found[name]['most_gigabytes']:.2f} GB"]
        for name, text in READERS.items()
    ]
    text = prose(f"""
        (The file was in the system's cache, except for the first read of {len(found["edp"]["seconds"])}.) `edp` takes
        {statistics.median(found["edp_over_pyarrow"]):.0f} times as long as decoding alone: it turns columns into rows,
        adds the state after each step, checks the values, and writes nearly twice as many bytes as it reads to
        temporary files in the cache folder. Packing for training then writes them once more.
        """)
    return f"{table(['', 'MB/s of numbers', 'memory that the process holds'], rows)}\n\n{text}"


def evaluation() -> str:
    found = result("evaluate")
    return prose(f"""
        Ten episodes of 1,000 steps of Hopper, with EAS of 10 actions and 15 network calls (`results/evaluate.json`,
        from `benchmarks/evaluate.py`): **{found["evaluation_seconds"]:.1f} s**, of which the environment steps alone
        are {found["environment_seconds"]:.1f} s, and {found["network_gflop"]:.0f} GFLOP of matmuls would take
        {found["network_seconds_at_gemm_rate"]:.1f} s at the rate of products of 256³. The evaluation takes
        {found["ratio"]:.2f} times their sum (between {found["spread"][0]:.2f} and {found["spread"][1]:.2f}).
        """)


def acting() -> str:
    rows = [
        [name, *(f"{row[key]:.2f} ms" for key in ("p50_ms", "p99_ms", "ms_at_gemm_rate")), f"{row['ratio']:.1f}"]
        for name, row in result("act")["variants"].items()
    ]
    return table(["", "half of the calls within", "99 % within", "its matmuls at the rate of 256³", "ratio"], rows)


def exported() -> str:
    head = ["", "", "half of the calls within", "99 % within", "memory", "file"]
    rows = [
        [
            name,
            engine,
            *(f"{row[key]:.2f} ms" for key in ("p50_ms", "p99_ms")),
            f"{row['memory_mb']:.0f} MB",
            f"{row['file_mb']:.1f} MB" if "file_mb" in row else "",
        ]
        for name, engines in result("act").get("exported", {}).items()
        for engine, row in engines.items()
    ]
    return table(head, rows)


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


PARTS = (
    about,
    bench,
    steps,
    pairs,
    later_pairs,
    elsewhere,
    solvers,
    fast,
    startup,
    memory,
    tables,
    evaluation,
    acting,
    exported,
    verdicts,
    faults,
    curves,
    critics,
    selection,
    noise_shares,
    narrow,
    recipe_scores,
    recipe_times,
    recipe_commands,
    levers,
    baselines,
    initial_noise,
    later,
)


def filled(text: str) -> str:
    parts = {part.__name__: part for part in PARTS}
    return MARKED.sub(lambda found: f"{found[1]}{parts[found[2]]()}\n{found[3]}", text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if something would change")
    check = parser.parse_args().check
    stale = [name for name in DOCUMENTS if filled(text := (ROOT / name).read_text(encoding="utf-8")) != text]
    for name in stale:
        print(f"{name} differs from results/" if check else name)
        if not check:
            (ROOT / name).write_text(filled((ROOT / name).read_text(encoding="utf-8")), encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
