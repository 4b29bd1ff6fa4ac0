"""A table, and how it is written as Markdown and as LaTeX."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

MARKDOWN_ESCAPES = {**{char: f"\\{char}" for char in "\\|*`"}, "&": "&amp;", "<": "&lt;"}
LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    **{char: f"\\{char}" for char in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "—": "---",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
LATEX_PACKAGES = "% needs \\usepackage{booktabs} and \\usepackage{graphicx}\n"
MOST_LATEX_COLUMNS = 8  # columns that fit on a page


class Cell(NamedTuple):
    """A text to show, and the number to sort by, if it is one."""

    text: str
    value: float | None = None


@dataclass
class Table:
    """A table for the page, for Markdown and for LaTeX."""

    title: str
    columns: list[str]
    rows: list[list[Cell]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lead: list[str] = field(default_factory=list)  # sentences with the result, before the table
    across: bool = False  # all columns hold the same quantity, so that the page can sort them, too

    def is_numeric(self, column: int) -> bool:
        return any(row[column].value is not None for row in self.rows)


def number_cell(value: float | None) -> Cell:
    return Cell("") if value is None else Cell(f"{value:.1f}", value)


def exact_cell(value: float | None) -> Cell:
    """Show a number of unknown size with four digits."""
    return Cell("") if value is None or value != value else Cell(f"{value:.4g}", float(value))


def without_empty_columns(table: Table) -> Table:
    """Remove the columns without any text."""
    kept = [i for i in range(len(table.columns)) if any(row[i].text for row in table.rows)]
    rows = [[row[i] for i in kept] for row in table.rows]
    return replace(table, columns=[table.columns[i] for i in kept], rows=rows)


def on_one_line(text: str) -> str:
    """Replace line breaks by spaces and remove other control characters."""
    return "".join(char if char.isprintable() else " " * (char in "\n\t") for char in text)


def markdown(table: Table) -> str:
    lines = [f"### {table.title}", "", *(f"{markdown_escaped(text)}\n" for text in table.lead)]
    if table.rows:
        lines += [markdown_row(table.columns), markdown_row(["---"] * len(table.columns))]
        lines += [*(markdown_row([cell.text for cell in row]) for row in table.rows), ""]
    return "\n".join([*lines, *map(markdown_escaped, table.notes), ""])


def markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(map(markdown_escaped, cells))} |"


def markdown_escaped(text: str) -> str:
    """Escape everything that Markdown or HTML would interpret."""
    return "".join(MARKDOWN_ESCAPES.get(char, char) for char in on_one_line(text)).replace("](", "]\\(")


def latex(table: Table) -> str:
    """Write a table in the style of the paper's (booktabs). A wide one is scaled to the page (graphicx)."""
    comments = [f"% {on_one_line(text)}" for text in (*table.lead, *table.notes)]
    if not table.rows:
        return "\n".join([f"% {on_one_line(table.title)}", *comments]) + "\n"
    kinds = ["r" if table.is_numeric(i) else "l" for i in range(len(table.columns))]
    small, end = ([r"\resizebox{\textwidth}{!}{%"], ["}"]) if len(kinds) > MOST_LATEX_COLUMNS else ([], [])
    lines = [
        r"\begin{table}",
        rf"\caption{{{latex_escaped(table.title)}}}",
        *small,
        rf"\begin{{tabular}}{{{''.join(kinds)}}}",
    ]
    lines += [r"\toprule", " & ".join(map(latex_escaped, table.columns)) + r" \\", r"\midrule"]
    lines += [" & ".join(latex_escaped(cell.text) for cell in row) + r" \\" for row in table.rows]
    lines += [r"\bottomrule", r"\end{tabular}", *end, r"\end{table}", *comments]
    return "\n".join(lines) + "\n"


def latex_escaped(text: str) -> str:
    """Escape LaTeX's special characters. A leading bracket or star would be read as an argument of the row before."""
    done = "".join(LATEX_ESCAPES.get(char, char) for char in on_one_line(text))
    return f"{{{done[0]}}}{done[1:]}" if done.startswith(("[", "*")) else done
