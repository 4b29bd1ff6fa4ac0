"""edp data check, convert and record: the user's own data."""

import json
from pathlib import Path

from edp.cli.parser import Parser, add_columns, add_max_memory, add_overwrite, as_flags, columns_of, flag
from edp.cli.signals import ending_on_sigterm
from edp.errors import UserError, counted, printable

CHECK = """Look at data before training on it: what is in it, what looks wrong, and what that would do to training. It
also draws a page of pictures. The exit code is 1 if training would refuse the data, or learn something wrong from
it."""
CONVERT = """Write data in another format. Steps, their order and the ends of episodes stay the same; other columns are
left out."""
RECORD = """Record episodes of a policy in any Gymnasium environment: your own callable (module:function), a trained
run, or random actions."""
PICTURES = (".png", ".svg", ".pdf")
EXIT_BAD = 1
LEVELS = {"error": "bold red", "warning": "yellow", "note": "dim"}


def check_data(argv: list[str]) -> int:
    parser = Parser("edp data check", CHECK, "DATA")
    add_source(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help=f"the page of pictures ({', '.join(PICTURES)})")
    parser.add_argument("--no-picture", action="store_true", help="draw nothing")
    add_overwrite(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    add_max_memory(parser)
    add_columns(parser)
    values = parser.parse(argv)

    from edp.data import formats, health, pictures
    from edp.files import check_page

    meaning, ranges, _ = columns_of(values)
    prefix = formats.prefix_of(values.data)
    title = values.data.removeprefix(prefix).replace("/", "-") if prefix else Path(values.data).absolute().stem
    page = values.out or Path(f"{title}-check.png")
    if page.suffix not in PICTURES:
        raise UserError(f"{page}: pictures are {', '.join(PICTURES)}")
    if not values.no_picture:
        check_page(page, values.out is not None, values.overwrite)
    log = formats.open_log(values.data, meaning)
    examined = health.examine_log(log, ranges.get("action_low", ()), ranges.get("action_high", ()))
    examined.findings = [each._replace(effect=as_flags(each.effect)) for each in examined.findings]
    if not values.no_picture:
        pictures.draw_health(examined, page, log.operators_of(examined.sample))
    if values.json:
        print(json.dumps(health.health_json(examined)))
    else:
        print_health(examined, log)
        if not values.no_picture:
            print(printable(f"pictures: {page}"))
    return EXIT_BAD if any(finding.level != "note" for finding in examined.findings) else 0


def print_health(examined, log) -> None:
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from edp.cli.terminal import shown

    console = Console()
    cut = ", the last one not finished" if examined.unfinished else ""
    ends = lambda numbers: f"{np.min(numbers):.6g} to {np.max(numbers):.6g}, median {np.median(numbers):.6g}"  # noqa: E731
    widths = [len(examined.columns_of(kind)) for kind in ("observation", "action")]
    episodes = counted(len(examined.lengths), "episode")
    lines = [
        f"{examined.name}",
        f"{counted(examined.rows, 'step')}: {counted(widths[0], 'observation')}, {counted(widths[1], 'action')}",
        f"{episodes}{cut}: {examined.terminals:,} ended, {examined.timeouts:,} cut off",
        *([f"time: {examined.span}"] if examined.span else []),
        f"lengths {ends(examined.lengths)}",
        f"returns {ends(examined.returns)}",
    ]
    if log.left_out:
        lines.append(f"not used: {', '.join(log.left_out[:12])}{', …' if len(log.left_out) > 12 else ''}")
    for line in lines:
        console.print(printable(line), highlight=False, markup=False, soft_wrap=True)
    gaps = any(column.not_finite for column in examined.columns)
    table = Table("", "column", "lowest", "mean", "highest", "std", *(["no number"] if gaps else []))
    for column in examined.columns:
        numbers = [f"{number:.5g}".replace("nan", "") for number in (column.low, column.mean, column.high, column.std)]
        missing = [f"{column.not_finite:,} of {examined.rows:,}" if column.not_finite else ""] if gaps else []
        table.add_row(column.kind, shown(column.name), *numbers, *missing)
    console.print(table)
    for finding in examined.findings:
        text = f"[{LEVELS[finding.level]}]{finding.level}[/]: {shown(finding.what)}\n  {shown(finding.effect)}"
        console.print(text, highlight=False, soft_wrap=True)
    if not examined.findings:
        console.print("nothing looks wrong", highlight=False)


def add_source(parser: Parser) -> None:
    from edp.data.formats import describe_formats

    parser.add_argument("data", metavar="DATA", help=describe_formats())


def add_target(parser: Parser) -> None:
    from edp.data.formats import describe_formats

    parser.add_argument("to", metavar="TO", help=f"the data to write: {describe_formats(written=True)}")


def convert_data(argv: list[str]) -> int:
    parser = Parser("edp data convert", CONVERT, "FROM TO")
    add_source(parser)
    add_target(parser)
    add_overwrite(parser)
    add_max_memory(parser)
    add_columns(parser)
    values = parser.parse(argv)

    from dataclasses import replace

    from edp.cli.progress import note
    from edp.data import formats

    meaning, ranges, _ = columns_of(values)
    reading = [formats.place_of(values.data), *([Path(values.columns)] if values.columns else [])]
    formats.check_target(values.to, values.overwrite, reading)
    log = formats.open_log(values.data, meaning)
    if ranges:
        log = replace(log, low=ranges.get("action_low", log.low), high=ranges.get("action_high", log.high))
    if log.left_out:
        note(f"left out: {', '.join(log.left_out[:12])}{', …' if len(log.left_out) > 12 else ''}")
    if log.operator_names:
        note(f"{values.to}: who acted is not stored")
    why = formats.loses_environment(values.to, log)
    if why:
        note(f"{values.to}: the environment {log.env} is not stored: {why}")
    with ending_on_sigterm():
        place = formats.write_log(values.to, log, values.overwrite)
    if formats.loses_steps(values.to, log):
        note(f"{values.to}: the last steps of episodes that were cut off are left out: their next state is unknown")
    print(printable(place))
    return 0


def record_data(argv: list[str]) -> int:
    parser = Parser("edp data record", RECORD, "TO --env ID")
    add_target(parser)
    parser.add_argument("--env", required=True, metavar="ID", help="a Gymnasium environment (ID or module:ID)")
    parser.add_argument("--policy", metavar="…", help="module:function, or a run directory (default: random actions)")
    parser.add_argument("--episodes", type=int, default=10, metavar="…", help="number of episodes (default: 10)")
    parser.add_argument("--seed", type=int, default=0, metavar="…", help="seed of the first episode (default: 0)")
    parser.add_argument(
        "--max-steps", type=int, metavar="…", help="cut episodes off here (default: the environment's limit, or 10,000)"
    )
    parser.add_argument("--clip", action="store_true", help="bring actions into the environment's range")
    add_overwrite(parser)
    values = parser.parse(argv)
    for name, low in (("episodes", 1), ("seed", 0), ("max_steps", 1)):
        number = getattr(values, name)
        if number is not None and number < low:
            raise UserError(f"{flag(name)} must be at least {low}, not {number}")

    from edp.cli.progress import counting, note
    from edp.data import formats
    from edp.data.synthesis.record import record as record_episodes
    from edp.envs.make import import_env

    formats.check_target(values.to, values.overwrite)
    import_env(values.env)
    with counting("episodes", values.episodes) as advance:
        log = record_episodes(
            values.env,
            policy_of(values.policy),
            episodes=values.episodes,
            seed=values.seed,
            max_steps=values.max_steps,
            clip=values.clip,
            on_progress=advance,
            on_note=note,
        )
    with ending_on_sigterm():
        place = formats.write_log(values.to, log, values.overwrite)
    print(printable(f"{place}: {counted(log.size, 'step')}"))
    return 0


def policy_of(name: str | None):
    """Load a run's policy, or the user's callable; None stands for random actions."""
    if name is None:
        return None
    if (Path(name) / "config.json").is_file():
        from edp.acting.load import load_policy

        policy = load_policy(name, outside="ignore")  # a recording has no one to warn

        def act(obs):
            return policy.act(obs)

        act.reset = policy.reset  # pyright: ignore
        return act
    if ":" not in name:
        raise UserError(f"--policy {name}: neither a run directory nor module:function")
    from edp.data.synthesis.record import load_callable

    return load_callable(name)
