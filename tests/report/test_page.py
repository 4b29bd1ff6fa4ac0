"""The page, without a browser."""

import json
import shutil
import time

import pytest
from fake import HOSTILE, entries, make

from edp.report.markup import markdown
from edp.report.page import build_page, page_data
from edp.report.tables import score_table
from support.untraced import untraced


def test_text_of_a_run_is_text_everywhere(tmp_path):
    folder = make(tmp_path / "a", device=HOSTILE, command=["edp", HOSTILE])
    make(tmp_path / "<b>x")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["algorithm"]["name"] = HOSTILE
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    page = build_page(entries(tmp_path), HOSTILE)
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "<img" not in page
    assert "<b>" not in page
    assert "<img" not in markdown(score_table(entries(tmp_path)))


def test_oms_is_drawn_where_the_table_has_it(tmp_path):
    found = entries(make(tmp_path / "a"))
    (run,) = page_data(found)["tasks"][0]["runs"]
    assert run["oms"][-1] == pytest.approx(score_table(found).rows[0][3].value, abs=1e-3)
    assert run["rat"][-1] == pytest.approx(score_table(found).rows[0][2].value, abs=1e-3)


def test_the_page_asks_for_nothing_from_elsewhere(tmp_path):
    make(tmp_path / "a")
    page = build_page(entries(tmp_path), "t")
    for word in ("http://", "https://", "src=", "href=", "@import", "url("):
        assert word not in page.replace("http://www.w3.org/2000/svg", "")  # a name, not a place


def test_two_hundred_runs_are_quick_and_small(tmp_path):
    """Each with 500 evaluations of five seeds."""
    first = make(tmp_path / "0", evaluations=500, seeds=5)
    for number in range(1, 200):
        shutil.copytree(first, tmp_path / str(number))
    with untraced():
        start = time.process_time()  # other processes do not count
        page = build_page(entries(tmp_path), "many")
        seconds = time.process_time() - start
        limit = 10 * slowness()
    assert len(page) < 10e6
    assert seconds < limit, seconds


def slowness() -> float:
    """How much slower this processor is now than an idle one: processes share its caches."""
    start = time.process_time()
    for _ in range(20):
        json.loads(json.dumps(list(range(100_000))))
    return max(1.0, (time.process_time() - start) / 0.25)
