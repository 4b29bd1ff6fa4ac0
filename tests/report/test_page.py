"""The page, without a browser."""

import json
import re
import shutil
import time

import pytest
from fake import HOSTILE, entries, make, make_own, verdict, write

from edp.report.markup import markdown
from edp.report.page import build_page, page_data
from edp.report.tables import result_tables, score_table
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
    scores, *_ = page_data(found)["tasks"][0]["charts"]
    (curve,) = scores["curves"]
    assert scores["wide"] and scores["name"] == "normalised score"
    assert curve["oms"][-1] == pytest.approx(score_table(found).rows[0][3].value, abs=1e-3)
    assert curve["rat"][-1] == pytest.approx(score_table(found).rows[0][2].value, abs=1e-3)


def headings(page):
    return re.findall(r"<h2>(.*?)</h2>", page)


def test_a_page_of_logs_opens_with_what_there_is(tmp_path):
    run = make_own(tmp_path / "a")
    write(run / "offline.jsonl", [{"step": 12000, "values": [1.0, 2.0, 3.0], "verdict": verdict()}])
    page = build_page(entries(run), "t")
    opening = ["Better than the log?", "Losses on held-out episodes", "Training", "What the policies do", "Runs"]
    assert headings(page)[:5] == opening
    assert '<p class="lead">a: Better by 2 € a day.</p>' in page and '<td class="better">better</td>' in page
    assert "RAT" not in page.split("<script")[0] and "OMS" not in page.split("<script")[0]


def test_a_page_of_both_kinds_has_scores_for_those_that_have_some(tmp_path):
    found = entries(make(tmp_path / "env"), make_own(tmp_path / "own"))
    page = build_page(found, "t")
    assert headings(page)[:4] == ["Scores", "Losses on held-out episodes", "Training", "What the policies do"]
    scores, losses = result_tables(found)
    assert [row[0].text for row in scores.rows] == ["hopper-medium-v2"]
    assert [row[0].text for row in losses.rows] == ["own"]


def test_states_that_need_attention_are_counted_at_the_top(tmp_path):
    make(tmp_path / "a"), make(tmp_path / "b", state="failed"), make(tmp_path / "c", state="failed")
    assert "<p>3 runs, 2 of them failed; made by" in build_page(entries(tmp_path), "t")


def test_a_run_has_a_colour_of_its_own_as_long_as_there_are_enough(tmp_path):
    runs = [make(tmp_path / str(i), task=f"{kind}-medium-v2") for i, kind in enumerate(("hopper", "walker2d") * 4)]
    colours = lambda found: [run["colour"] for run in page_data(found)["speed"]["runs"]]  # noqa: E731
    assert len(set(colours(entries(*runs)))) == 8
    more = entries(*runs, *(make(tmp_path / f"{i}b") for i in range(8)))
    names = {run["name"]: run["colour"] for panel in page_data(more)["tasks"] for run in panel["runs"]}
    assert names == {run["name"]: run["colour"] for run in page_data(more)["speed"]["runs"]}


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
