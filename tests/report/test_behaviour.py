"""What the page draws of a policy's actions."""

import json

import pytest
from fake import entries, look, make, make_own

from edp.report.behaviour import policy_behaviour


def test_actions_have_the_names_and_ranges_of_the_log(tmp_path):
    (entry,) = entries(make_own(tmp_path / "a"))
    actions = policy_behaviour(entry)["actions"]
    assert actions["who"] == "log"
    assert [(each["name"], each["low"], each["high"]) for each in actions["columns"]] == [
        ("valve_%", 0.0, 100.0),
        ("heater_%", -5.0, 5.0),
    ]
    assert actions["about"] == (
        "Actions in states of held-out episodes; the policy after 11,000 steps (the run has 12,000), mean over 3 seeds."
    )
    assert actions["columns"][1]["policy"][23] == 1.0


def test_a_seed_that_failed_does_not_count(tmp_path):
    (entry,) = entries(make_own(tmp_path / "a", failed=1))
    actions = policy_behaviour(entry)["actions"]
    assert actions["columns"][0]["policy"][:3] == pytest.approx([0.5, 0.0, 0.5])
    assert "mean over 2 seeds" in actions["about"]
    assert entry.held_out["action distance"].high[-1] == 3.0 and entry.held_out["action distance"].mean[-1] == 2.0


def test_what_was_recorded_at_another_step_says_so(tmp_path):
    run = make(tmp_path / "a")
    look(run)
    seen = json.loads((run / "look.json").read_text(encoding="utf-8")) | {"step": 4000}
    (run / "look.json").write_text(json.dumps(seen), encoding="utf-8")
    found = policy_behaviour(entries(run)[0])
    after = "after 4,000 steps (the run has 12,000)"
    assert found["episode"]["about"].endswith(after) and after in found["actions"]["about"]
    assert found["plane"]["after"] in after
    look(run)
    assert policy_behaviour(entries(run)[0])["episode"]["about"].endswith("; the policy after 12,000 steps")
