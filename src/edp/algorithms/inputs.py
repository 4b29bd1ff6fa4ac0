"""Algorithms as arguments of compiled programs, which are shared by all values of most hyper-parameters."""

from dataclasses import fields, replace
from typing import Any

import equinox as eqx
from jaxtyping import PRNGKeyArray

from edp.algorithms.base import Algorithm, Metrics


class Inputs(eqx.Module):
    """An algorithm whose numbers are inputs of a program, and whose other options are compiled into it.

    Inputs are the options that declare it (see ``option``): by default all floats, such as learning rates and weights.
    Zeros are compiled in, since 0 leaves a part of many algorithms out (see ``is_zero``).
    """

    structure: Any = eqx.field(static=True)  # the algorithm with 1 in the place of each input
    numbers: dict[str, Any]

    def __init__(self, algorithm: Algorithm):
        entries: Any = fields(algorithm)  # pyright: ignore
        given = {entry.name: getattr(algorithm, entry.name) for entry in entries if entry.metadata.get("is_input")}
        self.numbers = {name: value for name, value in given.items() if value != 0}
        ones = {name: type(value)(1) for name, value in self.numbers.items()}
        self.structure = replace(algorithm, **ones)  # pyright: ignore

    @property
    def algorithm(self) -> Any:
        return replace(self.structure, **self.numbers)


class Update(Inputs):
    """The update of an algorithm."""

    def __init__(self, algorithm: Algorithm):
        super().__init__(algorithm)

    def __call__(self, state: Any, batch: Any, key: PRNGKeyArray) -> tuple[Any, Metrics]:
        return self.algorithm.update(state, batch, key)
