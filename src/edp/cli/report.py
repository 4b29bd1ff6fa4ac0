"""edp report RUN …"""

import json
import time
from functools import partial
from pathlib import Path

from edp.cli.parser import Parser, add_overwrite
from edp.errors import UserError, printable

DESCRIPTION = """Make one page of any runs, finished or running: scores beside the paper's, curves, what the policies
do, what differs between the runs, and how to make them again. The page is one file. A folder stands for the runs in
it; if it is that of a sweep, the page begins with the sweep."""
REPORT_FORMATS = {"html": ".html", "md": ".md", "tex": ".tex"}
LEAST_SECONDS = 2  # between two readings of the runs with --watch


def main(argv: list[str]) -> int:
    parser = Parser("edp report", DESCRIPTION, "[RUN …]")
    parser.add_argument(
        "runs",
        type=Path,
        nargs="*",
        default=[Path("runs")],
        metavar="RUN",
        help="runs, or folders of them (default: runs)",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to (default: report.html, .md or .tex)")
    parser.add_argument("--format", metavar="…", help="html, md or tex (default: as --out ends, or html)")
    parser.add_argument("--title", default="Training diffusion policies", metavar="…", help="title of the page")
    parser.add_argument("--paper", action="store_true", help="also the paper's tables, with these runs beside them")
    parser.add_argument(
        "--bench", type=Path, metavar="FILE", help="for the paper's speeds: what edp bench --json wrote"
    )
    parser.add_argument(
        "--look",
        action="store_true",
        help="first play an episode with each policy, unless that was done after its last checkpoint",
    )
    parser.add_argument("--figures", type=Path, metavar="DIR", help="also write the figures here, as .svg and .png")
    add_overwrite(parser)
    parser.add_argument("--env", metavar="ID", help="environment of runs on your own data, for --look")
    parser.add_argument("--watch", action="store_true", help="rewrite it while runs train, until Ctrl-C")
    parser.add_argument(
        "--every", type=float, default=10.0, metavar="…", help="seconds between updates with --watch (default: 10)"
    )
    values = parser.parse(argv)

    from edp.cli.progress import note
    from edp.files import check_page
    from edp.report import collect
    from edp.report.sweep_results import find_sweeps

    kind = values.format or (values.out.suffix.lstrip(".") if values.out else "html")
    if kind not in REPORT_FORMATS:
        raise UserError(f"a report is html, md or tex, not {kind!r}")
    if values.bench and not values.paper:
        raise UserError("--bench is for the paper's speeds: use it with --paper")
    if values.look and kind != "html":
        raise UserError("--look is for the page: tables do not show episodes")
    if values.env and not values.look:
        raise UserError("--env is for --look: nothing else needs an environment")
    if not values.every >= LEAST_SECONDS:
        raise UserError(f"--every must be at least {LEAST_SECONDS}, not {values.every:g}")
    out = values.out or Path("report" + REPORT_FORMATS[kind])
    found, sweeps = collect.find_runs(values.runs), find_sweeps(values.runs)
    if not found and not sweeps:
        raise UserError(f"no runs in {', '.join(map(str, values.runs))}")
    read = [file for run in (*found, *sweeps) for file in run.glob("*.json*")] + [
        file for file in [values.bench] if file
    ]
    check_page(out, values.out is not None, values.overwrite, read)
    rates = bench_rates(values.bench) if values.bench else None
    if values.look:
        if values.figures:
            draw_figures(values, collect.read_runs(values.runs), rates, draw_sweeps(values.runs))
        look_at_all(found, values.env)
    drawn = write_report(values, kind, out, rates)
    values.overwrite = True  # with --watch
    print(printable(str(out)), flush=True)
    if drawn:
        print(printable(str(values.figures)), flush=True)
    elif values.figures:
        note("no figures: they show scores and ablations, and these runs have none")
    while values.watch:
        time.sleep(values.every)
        write_report(values, kind, out, rates)
    return 0


def look_at_all(folders: list[Path], env: str | None) -> None:
    """Inspect each policy and save the result in its run. Runs that fail are reported and skipped."""
    from edp.acting.inspect import inspect_policy, inspected_parts
    from edp.cli.locate import find_file, load_noting
    from edp.cli.progress import counting, note
    from edp.runs.directory import Run
    from edp.runs.load import locate_run_data, read_run_data, with_environment

    with counting("policies inspected", len(folders)) as advance:
        for done, folder in enumerate(folders, 1):
            try:
                run = Run.open(folder)
                spec, found = load_noting(run)
                seen = inspected_parts(run, found.step)
                try:
                    spec = with_environment(spec, env if env and spec.task.own else "", run)
                except UserError as error:
                    if "episode" not in seen:
                        note(f"{error} (so no episode is played)")
                wanted = {"actions", "episode"} if spec.task.env else {"actions"}
                if (wanted if not spec.policy.reads_histories else {"step"}) - seen:
                    try:
                        place = locate_run_data(run, spec, partial(find_file, quiet=True), advice="")
                        data = read_run_data(run, spec, place)
                    except UserError as error:
                        note(f"{error} (so its actions are not compared with the data's)")
                        data = None
                    inspect_policy(run, spec, found, data)
            except UserError as error:
                note(f"{error} (so it is not inspected)")
            advance(done)


def write_report(values, kind: str, out: Path, rates: dict[tuple[str, str], float] | None) -> bool:
    """Read the runs, and write the report and the figures. Returns whether figures were written."""
    from edp.files import write_errors, write_text
    from edp.report.collect import read_runs
    from edp.report.paper_tables import paper_tables

    entries, pictures, figures = read_runs(values.runs), {}, {}
    sweeps = draw_sweeps(values.runs, with_figures=kind == "html" or bool(values.figures))
    ablated = any((entry.folder / "ablations").is_dir() for entry in entries)
    if values.figures or (kind == "html" and (values.paper or ablated)):
        from edp.drawing import data_uri, save_figures

        figures = draw_figures(values, entries, rates, sweeps)
        if values.figures and figures:
            save_figures(figures, values.figures)
        elsewhere = ("curves-", "sweep-")  # on the page
        pictures = {name: data_uri(figure) for name, figure in figures.items() if not name.startswith(elsewhere)}
    more = paper_tables(entries, rates) if values.paper else []
    if kind == "html":
        from edp.report.page import build_page

        text = build_page(entries, values.title, more, round(values.every) if values.watch else 0, pictures, sweeps)
    else:
        text = tables_text(entries, more, kind, sweeps)
    with write_errors(out):
        write_text(out, text.encode(errors="replace").decode())  # names of folders may not be valid UTF-8
    return bool(values.figures and figures)


def draw_sweeps(folders: list[Path], with_figures: bool = True) -> dict[str, list]:
    """Read the sweeps among these folders, and make the parts of the report about each, by name."""
    from edp.report.sweep import sweep_parts
    from edp.report.sweep_results import read_sweeps

    return {entry.name: sweep_parts(entry, with_figures) for entry in read_sweeps(folders)}


def draw_figures(values, entries: list, rates: dict[tuple[str, str], float] | None, sweeps: dict[str, list]) -> dict:
    """Draw the figures, by name. Refuses a folder of --figures that has figures of these names."""
    from edp.drawing import check_figures
    from edp.report.figures import all_figures
    from edp.report.sweep import sweep_figures

    figures = all_figures(entries, rates, values.paper, with_curves=values.figures is not None)
    figures |= sweep_figures(sweeps)
    if values.figures:
        check_figures(figures, values.figures, values.overwrite)
    return figures


def tables_text(entries: list, more: list, kind: str, sweeps: dict[str, list]) -> str:
    """Write all tables as Markdown or LaTeX."""
    from edp.files import MADE_BY
    from edp.report.markup import LATEX_PACKAGES, latex, markdown
    from edp.report.sweep import sweep_tables
    from edp.report.tables import difference_table, result_tables, run_table

    tables = [*sweep_tables(sweeps), *result_tables(entries), *more, run_table(entries), difference_table(entries)]
    form, begin = {"md": (markdown, f"<!-- {MADE_BY} -->\n"), "tex": (latex, f"% {MADE_BY}\n{LATEX_PACKAGES}")}[kind]
    return begin + "\n".join(form(table) for table in tables if table.rows or table.notes or table.lead)


def bench_rates(path: Path) -> dict[tuple[str, str], float]:
    """Read steps a second by (variant, "training" or "acting") from a file that edp bench --json wrote."""
    from edp.data.checks import check_exists

    check_exists(path)
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["variants"]
        return {(row["name"], row["what"]): float(row["steps_per_second"]) for row in rows}
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise UserError(f"{path}: not a result of edp bench --json ({error})") from None
