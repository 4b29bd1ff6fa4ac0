"""Tables as Markdown and LaTeX."""

import json

from fake import entries, make

from edp.report.markup import latex, latex_escaped, markdown, markdown_row
from edp.report.tables import run_table, score_table


def test_notes_hold_no_marks_of_markdown_and_latex(tmp_path):
    evil = "x\n\\input{secret}<img onerror=1>"
    ends = {"min_return": 0.0, "max_return": 1.0}
    folder = make(tmp_path / "a", task="hopper-medium-v2", own_task=ends)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8")) | {"task": evil}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    table = score_table(entries(folder))
    table.notes.append(evil)
    assert "\n\\input" not in latex(table) and "<img" not in markdown(table)


def test_markdown_and_latex_hold_the_same_numbers(tmp_path):
    make(tmp_path / "a_b")
    found = entries(tmp_path)
    rat = score_table(found).rows[0][2].text
    assert f"| {rat} |" in markdown(score_table(found))
    tex = latex(run_table(found))
    assert r"a\_b" in tex
    assert tex.count(r"\\") == 2
    for special, escaped in (
        ("50 %", r"50 \%"),
        ("a&b", r"a\&b"),
        ("\\x", r"\textbackslash{}x"),
        ("~", r"\textasciitilde{}"),
        ("[1] <a|b>", r"{[}1] \textless{}a\textbar{}b\textgreater{}"),
        ("*x", "{*}x"),
        ("\x1b[0m", "{[}0m"),
    ):
        assert latex_escaped(special) == escaped
    assert markdown_row(["<b>&lt;", "*a* `b` [c](d)"]) == r"| &lt;b>&amp;lt; | \*a\* \`b\` [c]\(d) |"
