"""Texts of messages."""

import re
from pathlib import Path

import pytest

import edp
from edp.errors import counted


@pytest.mark.parametrize(("number", "text"), [(0, "0 steps"), (1, "1 step"), (2, "2 steps"), (10_000, "10,000 steps")])
def test_numbers_of_things(number, text):
    assert counted(number, "step") == text


def test_no_message_leaves_the_plural_open():
    files = Path(edp.__file__).parent.rglob("*.py")
    assert [file for file in files if re.search(r"[a-z]\(s\)", file.read_text(encoding="utf-8"))] == []
