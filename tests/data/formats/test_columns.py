"""Files that say what columns mean."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edp.data.formats import columns
from edp.errors import UserError
from support.logs import (
    examples,
)
from support.malformed import (
    assert_one_line,
    damages,
    reads_or_refuses,
    small_log,
    write_small_csv,
)

TOML = """observation_columns = ["observation_*"]
action_columns = "action_0"
reward_column = "reward"
episode_column = "episode"
action_low = [-1, 0.5]
action_high = 1
"""


def reads_or_refuses_toml(path, table):
    try:
        found = columns.read_toml(path)
    except UserError as error:
        assert_one_line(error, str(path))
        return None
    for side in columns.RANGES:
        assert np.isfinite(found.pop(side, 0.0)).all()
    reads_or_refuses(table, found)
    return found


@examples(150)
@given(damage=damages())
def test_a_damaged_mapping_is_refused_or_harmless(tmp_path, damage):
    write_small_csv(tmp_path / "a.csv", small_log())
    (tmp_path / "a.toml").write_bytes(damage(TOML.encode()))
    reads_or_refuses_toml(tmp_path / "a.toml", tmp_path / "a.csv")


VALUES = [
    "1",
    "1e400",
    "nan",
    "-inf",
    "9" * 400,
    "9" * 5000,
    '""',
    "[]",
    "[[]]",
    "{}",
    "true",
    '"*"',
    '["*", "*"]',
    "1979-13-01",
]

VALUES += [
    '"[z-a]"',
    '"\\n"',
    '"\\u0000"',
    "[" * 2000,
    '["reward", 1]',
    '"action_0"',
    "07:32:00",
    '["observation_0", "x"]',
]


@examples(150)
@given(entries=st.dictionaries(st.sampled_from([*columns.DEFAULTS, *columns.RANGES, "x"]), st.sampled_from(VALUES)))
def test_a_mapping_of_anything_is_refused_or_harmless(tmp_path, entries):
    write_small_csv(tmp_path / "a.csv", small_log())
    (tmp_path / "a.toml").write_text(
        "\n".join(f"{name} = {value}" for name, value in entries.items()), encoding="utf-8"
    )
    reads_or_refuses_toml(tmp_path / "a.toml", tmp_path / "a.csv")


def test_mappings_that_are_no_files_are_refused(tmp_path):
    write_small_csv(tmp_path / "a.csv", small_log())
    assert reads_or_refuses_toml(tmp_path / "none.toml", tmp_path / "a.csv") is None
    assert reads_or_refuses_toml(tmp_path, tmp_path / "a.csv") is None
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe")
    assert reads_or_refuses_toml(tmp_path / "a.toml", tmp_path / "a.csv") is None
