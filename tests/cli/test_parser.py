"""Values on the command line."""

import argparse

import pytest

from edp.cli.parser import Parser, whole_number


@pytest.mark.parametrize(
    ("text", "number"), [("7", 7), ("-3", -3), ("10_000", 10_000), ("1e3", 1000), ("2.5E2", 250), ("2.0", 2)]
)
def test_whole_numbers_may_be_written_with_an_exponent(text, number):
    assert whole_number(text) == number and type(whole_number(text)) is int


@pytest.mark.parametrize("text", ["1.5e0", "1e-1", "inf", "1e400", "nan", "many", "", "0x10"])
def test_other_numbers_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a whole number"):
        whole_number(text)


def test_every_option_of_whole_numbers_takes_them(fails):
    parser = Parser("x", "")
    parser.add_argument_group("more").add_argument("--rows", type=int)
    assert parser.parse(["--rows", "1e5"]).rows == 100_000
    assert "'1.5e0' is not a whole number" in fails("train", "hopper-medium-v2", "--steps", "1.5e0")
    assert "'6.5' is not a whole number" in fails("train", "hopper-medium-v2", "--hidden", "1e2,6.5")
