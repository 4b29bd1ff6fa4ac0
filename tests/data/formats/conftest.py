"""Fixtures of the tests of data formats."""

import resource
from pathlib import Path

import pytest

from support.logs import (
    NUMBERS,
)


@pytest.fixture(autouse=True, scope="module")
def little_memory():
    """Limit the memory of the process, in case a damaged file claims a huge size."""
    before, pages = resource.getrlimit(resource.RLIMIT_AS), Path("/proc/self/statm")
    if pages.exists():
        used = int(pages.read_text(encoding="utf-8").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 8 * 2**30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A function that returns an unused name in a format."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    monkeypatch.setenv("EDP_CACHE", str(tmp_path / "cache"))

    def new(form):
        number = next(NUMBERS)
        return f"minari:random/log{number}-v0" if form == "minari:" else str(tmp_path / f"{number}{form}")

    return new
