"""Names and ranges, to JSON and back."""

import json

import pytest

from edp.data.signals import NUMBER, TEXT, TIME, Encoding, Signals, name_signals

SIGNALS = Signals(
    ("mode=day", "mode=night", "level_%", "hour_sin", "hour_cos"),
    ("valve_%",),
    (0.0, 0.0, 10.0, -1.0, -1.0),
    (1.0, 1.0, 90.0, 1.0, 1.0),
    0.5,
    "0123",
    Encoding({"mode": ("day", "night")}, "time", "", ("hour",), ("operator",)),
)


def to_json():
    return json.loads(json.dumps(SIGNALS.to_json()))


def test_to_json_and_back():
    assert Signals.from_json(to_json(), (5, 1)) == SIGNALS


def test_inputs():
    found = [(each.name, each.kind, each.numbers.start, each.numbers.stop) for each in SIGNALS.inputs()]
    assert found == [("mode", TEXT, 0, 2), ("level_%", NUMBER, 2, 3), ("time", TIME, 3, 5)]


@pytest.mark.parametrize(
    "change",
    [
        {"observations": ["a"] * 4},
        {"observations": "abcde"},
        {"actions": [1]},
        {"low": [0.0]},
        {"low": ["a"] * 5},
        {"distance": "far"},
        {"reference_sha256": None},
        {"encoding": None},
        {"encoding": {"texts": {}}},
        {"encoding": {"texts": {"mode": []}, "calendar": [], "unused": []}},
        {"encoding": {"texts": {}, "calendar": ["hour"] * 3, "unused": []}},
        {"more": 1},
    ],
    ids=str,
)
def test_other_content_is_refused(change):
    with pytest.raises((TypeError, ValueError, KeyError)):
        Signals.from_json(to_json() | change, (5, 1))


def test_names_that_are_missing_or_not_unique_are_numbered():
    numbered = ("observation_0", "observation_1"), ("action_0",)
    for observations, actions in (((), ()), (("a", "a"), ("u", "v")), (("a",), ())):
        found = name_signals(observations, actions, SIGNALS.encoding, (2, 1))
        assert (found.observations, found.actions) == numbered
        assert found.encoding == Encoding()
    found = name_signals(("a", "b"), ("u",), Encoding(unused=("c",)), (2, 1))
    assert (found.observations, found.actions, found.encoding.unused) == (("a", "b"), ("u",), ("c",))
