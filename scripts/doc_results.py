"""What the tables of the documentation have in common: files of results, and paragraphs."""

import json
import textwrap
from pathlib import Path

ROOT = Path(__file__).parent.parent


def result(name: str) -> dict:
    return json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))


def prose(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 130, break_on_hyphens=False, break_long_words=False)
