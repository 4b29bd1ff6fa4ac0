"""Rows of offline.jsonl, good and malformed."""

import pytest
from fake import verdict

from edp.report.offline import offline_values, read_verdict


def test_a_verdict_is_read():
    found = read_verdict(verdict())
    assert found is not None
    assert (found.word, found.policy, found.log, found.difference) == ("better", -8.0, -10.0, (0.5, 2.0, 3.5))
    assert found.operators == {"anna": -9.0, "bert": -11.0}


@pytest.mark.parametrize(
    ("change", "part", "value"),
    [
        ({"word": "splendid"}, "word", ""),
        ({"policy": "many"}, "policy", None),
        ({"log": float("nan")}, "log", None),
        ({"difference": [1, 2]}, "difference", None),
        ({"difference": [1, None, 2]}, "difference", None),
        ({"operators": ["anna"]}, "operators", {}),
        ({"operators": {"anna": 1, "bert": None}}, "operators", {"anna": 1.0}),
        ({"unit": None}, "unit", ""),
    ],
)
def test_a_malformed_part_is_left_out(change, part, value):
    found = read_verdict(verdict(**change))
    assert found is not None and getattr(found, part) == value
    assert found.sentence == "Better by 2 € a day."


@pytest.mark.parametrize("content", [None, 3, {}, {"sentence": ""}, {"sentence": 5}, {"word": "better"}])
def test_without_a_sentence_there_is_no_verdict(content):
    assert read_verdict(content) is None


def test_the_last_value_of_a_step_and_the_last_options_count():
    row = lambda step, value, **options: {"step": step, "values": [value], "options": options}  # noqa: E731
    rows = [row(30, 1.0, fqe_rows=5), row(10, 2.0), row(20, 3.0), row(10, 4.0)]
    assert [(each.step, each.values) for each in offline_values(rows)] == [(10, [4.0]), (20, [3.0])]
    assert offline_values([]) == []
