"""edp bench"""

import sys
from pathlib import Path

from edp.cli.parser import Parser, add_overwrite
from edp.errors import UserError, printable, unknown

DESCRIPTION = """The paper's efficiency figure on this machine: how fast Diffusion-QL with K = 100 (dql), EDP without
DPM-Solver, EDP without action approximation, EDP and feed-forward TD3+BC train and act, at walker2d's shapes, without
any data. All variants take turns; compilation is measured separately. Run it on an idle machine."""


def main(argv: list[str]) -> int:
    parser = Parser("edp bench", DESCRIPTION)
    parser.add_argument("--rounds", type=int, default=5, metavar="…", help="measurements of each variant (default: 5)")
    parser.add_argument(
        "--only", type=lambda text: text.split(","), metavar="…", help="these variants, comma-separated (default: all)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw a bar chart (.png, .svg, .pdf)")
    add_overwrite(parser)
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
        check_writable(path, values.overwrite)
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 120)
    result = measure_with_status(variants.variant_cases(names), values.rounds, console)
    print_rates(result, console)
    if values.json:
        from edp.files import write_json

        write_json(values.json, result)
        print(printable(str(values.json)))
    if values.picture:
        from edp.drawing import save_figure
        from edp.report.paper_figures import rate_figure

        save_figure(rate_figure(result["variants"]), values.picture)
        print(printable(str(values.picture)))
    return 0


def measure_with_status(cases: dict, rounds: int, console) -> dict:
    """Return the result of ``edp.bench.variants.measure``, and show its progress on the console."""
    from edp.bench import variants

    result = {}
    with console.status("") as status:
        for event in variants.measure(cases, rounds):
            if isinstance(event, str):
                status.update(event)
            else:
                result = event
    return result


def print_rates(result: dict, console) -> None:
    """Print a table of training and one of acting."""
    from rich.table import Table

    from edp.report.paper_figures import RATE_TITLES

    for activity, unit in RATE_TITLES.items():
        rows = [row for row in result["variants"] if row["what"] == activity]
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
