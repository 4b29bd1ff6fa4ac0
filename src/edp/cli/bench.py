"""edp bench"""

import sys
from pathlib import Path

from edp.cli.parser import Parser
from edp.errors import UserError, unknown

DESCRIPTION = """The paper's efficiency figure on this machine: how fast Diffusion-QL with K = 100 (dql), EDP without
DPM-Solver, EDP without action approximation, EDP and feed-forward TD3+BC train and act, at walker2d's shapes, without
any data. All variants take turns; compilation is counted apart. Wants an idle machine."""
TITLES = {"training": "training steps/s", "acting": "environment steps/s"}


def main(argv: list[str]) -> int:
    parser = Parser("edp bench", DESCRIPTION)
    parser.add_argument("--rounds", type=int, default=5, metavar="…", help="measurements of each variant (default: 5)")
    parser.add_argument(
        "--only", type=lambda text: text.split(","), metavar="…", help="these variants, comma-separated (default: all)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw a bar chart (.png, .svg, .pdf)")
    values = parser.parse(argv)

    from edp.bench import variants
    from edp.files import check_writable

    if values.rounds < 1:
        raise UserError(f"--rounds must be at least 1, not {values.rounds}")
    names = values.only or list(variants.VARIANTS)
    for name in names:
        if name not in variants.VARIANTS:
            raise unknown("variant", name, variants.VARIANTS)
    for path in filter(None, (values.json, values.picture)):
        check_writable(path)
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 120)
    result = measured(variants.cases_of(names), values.rounds, console)
    show(result, console)
    if values.json:
        from edp.files import write_json

        write_json(values.json, result)
        print(values.json)
    if values.picture:
        picture(result, values.picture)
    return 0


def measured(cases: dict, rounds: int, console) -> dict:
    """What ``bench.measure`` finds, with its progress on the console."""
    from edp.bench import variants

    result = {}
    with console.status("") as status:
        for event in variants.measure(cases, rounds):
            if isinstance(event, str):
                status.update(event)
            else:
                result = event
    return result


def show(result: dict, console) -> None:
    from rich.table import Table

    for what, unit in TITLES.items():
        rows = [row for row in result["variants"] if row["what"] == what]
        if not rows:
            continue
        table = Table("variant", unit, "spread", f"× {rows[0]['name']}", "GFLOP/step", "share of GEMM", "compiled in")
        for row in rows:
            table.add_row(
                row["name"],
                f"{row['steps_per_second']:,.1f}",
                "{:,.1f} to {:,.1f}".format(*row["spread"]),
                f"{row['times_first']:.2f}",
                f"{row['gflop_per_step']:.4g}",
                f"{row['share_of_gemm']:.0%}",
                f"{row['compile_seconds']:.1f} s",
            )
        console.print(table)
    rates = f"256³ at {result['gemm_gflops']:.0f} GFLOP/s, 1024³ at {result['large_gemm_gflops']:.0f}"
    console.print(f"GEMM in float32: {rates}. Shares are of the first: layers are 256 wide.", highlight=False)


def picture(result: dict, path: Path) -> None:
    """Bars of training and acting, as in the paper's figure."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for axis, (what, title) in zip(axes, TITLES.items(), strict=True):
        rows = [row for row in result["variants"] if row["what"] == what]
        medians = [row["steps_per_second"] for row in rows]
        low, high = ([abs(row["spread"][i] - row["steps_per_second"]) for row in rows] for i in (0, 1))
        bars = axis.barh([row["name"] for row in rows], medians, xerr=(low, high), color="C0", ecolor="0.5")
        axis.bar_label(bars, [f"  {value:,.0f}" if value >= 10 else f"  {value:.1f}" for value in medians])
        axis.invert_yaxis()
        axis.set_xlabel(title)
        axis.margins(x=0.18)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(path)
