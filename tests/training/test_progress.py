"""Progress of ``edp.fit``: a bar in a terminal, lines in a notebook without widgets, nothing elsewhere."""

import io
from types import SimpleNamespace

import numpy as np
from rich.console import Console

from edp.acting.evaluator import Evaluation
from edp.training import progress
from edp.training.loop import Epoch

SPEC = SimpleNamespace(training=SimpleNamespace(steps=40), task=SimpleNamespace(measure="return"))
EVENTS = [
    Epoch(1, 10.0, {}),
    Epoch(20, 10.0, {"bc_loss": [0.5]}),
    Evaluation(20, np.array([[3.0, 4.0]]), 1.0, []),
    Epoch(40, 12.0, {}),
]


def show_all(monkeypatch, console):
    monkeypatch.setattr(progress, "Console", lambda **_: console)
    with progress.progress_bar(SPEC) as show:  # pyright: ignore
        for event in EVENTS:
            show(event)


def test_a_terminal_has_a_bar(monkeypatch):
    file = io.StringIO()
    show_all(monkeypatch, Console(file=file, force_terminal=True, width=100))
    assert "40/40" in file.getvalue() and "12 steps/s return 3.5" in file.getvalue()


def test_a_notebook_without_widgets_has_lines(monkeypatch, capsys):
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    show_all(monkeypatch, SimpleNamespace(is_terminal=False, is_jupyter=True))
    lines = ["step 20 of 40  10 steps/s", "step 40 of 40  12 steps/s  return 3.5"]
    assert capsys.readouterr().out.splitlines() == lines


def test_elsewhere_there_is_nothing(monkeypatch, capsys):
    show_all(monkeypatch, Console(file=io.StringIO()))
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
