"""Options as dataclass fields, and their checks."""

from dataclasses import dataclass

import pytest

from edp.cli.parser import as_flags
from edp.errors import UserError
from edp.options import check_options, option


@dataclass(frozen=True)
class Options:
    n_step: int = option(1, "a number", low=1, high=10)
    scale: float = option(1.0, "another", low=0.0)
    hidden: tuple[int, ...] = option((256,), "some", low=1)
    name: str = option("dpm", "a word")


def test_good_values_pass_and_lists_become_tuples():
    assert check_options(Options(hidden=[3, 4])).hidden == (3, 4)  # pyright: ignore
    assert check_options(Options(scale=2)).scale == 2


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n_step": 0}, "`n_step` must be from 1 to 10, not 0"),
        ({"n_step": 1.5}, "`n_step` must be a whole number, not 1.5"),
        ({"n_step": True}, "`n_step` must be a whole number, not True"),
        ({"n_step": (1,)}, r"`n_step` must be one whole number, not \(1,\)"),
        ({"scale": -1.0}, "`scale` must be at least 0.0, not -1.0"),
        ({"scale": float("nan")}, "`scale` must be at least 0.0, not nan"),
        ({"hidden": 5}, "`hidden` must be a list of whole numbers, not 5"),
        ({"hidden": (5, 0)}, "`hidden` must be at least 1, not 0"),
        ({"hidden": (2**40,)}, "`hidden` must be from 1 to 2147483647, not 1099511627776"),
        ({"name": 3}, "`name` must be a word, not 3"),
    ],
)
def test_bad_values_are_refused(values, message):
    with pytest.raises(UserError, match=message):
        check_options(Options(**values))


def test_the_command_line_names_flags():
    assert as_flags("`n_step` must be at least 1") == "--n-step must be at least 1"
    assert as_flags("use `eas=1`, or `eas_spread`") == "use --eas 1, or --eas-spread"
    assert as_flags("a `File Name`, `x.y` and `") == "a `File Name`, `x.y` and `"
