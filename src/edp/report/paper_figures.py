"""The paper's figures of speed and of scores by domain, with ours in them, and speeds alone."""

from typing import TYPE_CHECKING, Any

import numpy as np

from edp.data import tasks
from edp.drawing import BLUE, GREY, LIGHT, SMALL_TEXT, drawing_style, fix_layout
from edp.report.collect import Entry
from edp.report.paper_tables import AVERAGE, VARIANTS, Rates, paper_table
from edp.report.published import PUBLISHED_TABLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATE_TITLES = {"training": "training steps/s", "acting": "environment steps/s"}
BASE = "DQL (JAX)"  # speeds are multiples of this variant's


def speed_figure(rates: Rates) -> "Figure":
    """Draw the paper's figures 1 (left) and 2: rates as multiples of Diffusion-QL's on the same machine."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    content = PUBLISHED_TABLES["speed"]
    columns, base = content["columns"], content["columns"].index(BASE)
    figure = Figure(figsize=(9.5, 4), layout="constrained")
    sides = figure.subplots(1, 2, sharey=True)
    for axes, printed, (activity, title) in zip(sides, content["rows"].values(), RATE_TITLES.items(), strict=True):
        ours = [rates.get((VARIANTS.get(column, ""), activity), np.nan) for column in columns]
        ends = [1.0]
        for shift, colour, who, values in ((-0.2, LIGHT, "the paper's (GPU)", printed), (0.2, BLUE, "ours", ours)):
            values = np.array([value if 0 < value < np.inf else np.nan for value in values])
            ratios = values / values[base]
            places = np.arange(len(columns)) + shift
            axes.barh(places, np.nan_to_num(ratios - 1), 0.38, left=1, color=colour, label=who)
            for place, ratio, value in zip(places, ratios, values, strict=True):
                text = "not measured" if np.isnan(ratio) else f"{ratio:.2g} × ({value:,.4g}/s)"
                axes.text(np.fmax(1, ratio) * 1.06, place, text, va="center", **SMALL_TEXT)
            ends += list(ratios[np.isfinite(ratios)])
        axes.set_xscale("log")
        axes.set_xlim(min(ends) / 1.3, max(ends) * (max(ends) / min(ends)) ** 0.45 * 1.6)  # with room for text
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.axvline(1, color="0.3", linewidth=0.8)
        axes.set_xlabel(f"{title}, {columns[base]} = 1")
    sides[0].set_yticks(range(len(columns)), columns)
    sides[0].invert_yaxis()
    figure.legend(*sides[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    return figure


def domain_figure(entries: list[Entry]) -> "Figure | None":
    """Draw the paper's figure 1 (right): averages of the best other method, of the paper's EDP, and of ours.

    Domains without runs are left out; None if there are no others.
    """
    from matplotlib.figure import Figure

    content, table = PUBLISHED_TABLES["overall"], paper_table("overall", entries)
    bars, names = [], []
    for domain, numbers in content["averages"].items():
        printed = dict(zip(content["columns"], numbers, strict=True))
        other = max((name for name in printed if "EDP" not in name and printed[name]), key=printed.__getitem__)
        edp = "TD3+BC EDP" if domain == "locomotion" else "IQL EDP"
        place = table.columns.index(edp) + 1
        (ours,) = (row[place].value for row in table.rows if row[0].text == f"{domain}{AVERAGE}")
        members = [row for row in table.rows if (task := tasks.TASKS.get(row[0].text)) and task.domain == domain]
        some = sum(row[place].value is not None for row in members)
        if some:
            text = f"{some} of\n{len(members)} tasks" if ours is None else f"{ours:.1f}"
            bars.append([(value, f"{value:.1f}") for value in (printed[other], printed[edp])] + [(ours, text)])
            names.append(f"{domain}\nother: {other}\nEDP: {edp.removesuffix(' EDP')}")
    if not bars:
        return None
    figure = Figure(figsize=(2 + 1.5 * len(bars), 4), layout="constrained")
    axes = figure.add_subplot()
    for i, group in enumerate(bars):
        for j, ((value, text), colour) in enumerate(zip(group, (LIGHT, GREY, BLUE), strict=True)):
            at = i + 0.27 * (j - 1)
            axes.bar(at, value or 0, 0.25, color=colour)
            axes.text(at, max(value or 0, 0) + 1, text, ha="center", **SMALL_TEXT)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("average score (RAT)")
    legend = ("the best other method in the paper", "the paper's EDP", "ours, where every task has a run")
    figure.legend(
        list(axes.patches)[:3], legend, loc="outside upper center", ncols=3 if len(bars) > 2 else 1, frameon=False
    )
    return figure


def rate_figure(variants: list[dict[str, Any]]) -> "Figure":
    """Draw bars of how fast each variant trains and acts, from the ``variants`` of ``edp.bench.variants.measure``."""
    with drawing_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 3.2), layout="constrained")
        for axes, (activity, title) in zip(figure.subplots(1, 2), RATE_TITLES.items(), strict=True):
            rows = [row for row in variants if row["what"] == activity]
            medians = [row["steps_per_second"] for row in rows]
            low, high = ([abs(row["spread"][i] - row["steps_per_second"]) for row in rows] for i in (0, 1))
            bars = axes.barh([row["name"] for row in rows], medians, xerr=(low, high), color=BLUE, ecolor=GREY)
            axes.bar_label(bars, [f"  {value:,.0f}" if value >= 10 else f"  {value:.1f}" for value in medians])
            axes.invert_yaxis()
            axes.set_xlabel(title)
            axes.margins(x=0.18)
        return fix_layout(figure)
