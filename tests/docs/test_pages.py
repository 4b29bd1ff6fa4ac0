"""The documentation is up to date: numbers are those of results/, links have targets, and options exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


def test_numbers_are_those_of_the_results():
    found = subprocess.run(
        [sys.executable, ROOT / "scripts" / "fill_docs.py", "--check"], capture_output=True, text=True
    )
    assert found.returncode == 0, found.stdout + found.stderr


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to headings."""
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for link in re.findall(r"\]\(([^)\s]+)\)", document.read_text(encoding="utf-8")):
        if link.startswith("http"):
            continue
        name, _, anchor = link.partition("#")
        target = document.parent / name if name else document
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), link


def test_files_that_documents_name_are_there():
    for document in DOCUMENTS:
        for name in re.findall(
            r"`((?:results|benchmarks|examples|scripts|docs|tests)/[\w./-]+\.\w+)`",
            document.read_text(encoding="utf-8"),
        ):
            assert (ROOT / name).exists(), f"{document.name}: {name}"


def test_the_architecture_lists_the_packages():
    """Every module and package at the root of the package, and no others."""
    table = re.findall(r"^\| (`.*?`) \|", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"), re.MULTILINE)
    listed = {name.rstrip("/") for cell in table for name in re.findall(r"`([\w./]+)`", cell)}
    there = {path.name for path in (ROOT / "src" / "edp").iterdir() if path.suffix == ".py" or path.is_dir()}
    assert listed == {name for name in there if not name.startswith("__")}
