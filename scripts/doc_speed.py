"""Tables and paragraphs about speed and memory."""

import statistics

from doc_results import prose, result
from recipe_runs import table


def rows_of(found: dict, what: str = "training") -> dict[str, dict]:
    return {row["name"]: row for row in found["variants"] if row["what"] == what}


def rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 20 else f"{value:.1f}"


def spread(values: list[float], digits: int = 1) -> str:
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def machine() -> str:
    about = result("bench")["about"]
    return f"{about['cores']} cores of a shared {about['processor']} with JAX {about['jax']}"


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
