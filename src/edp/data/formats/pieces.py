"""Pieces of a table on their way to a log, with the time of each row and its number in the file."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from edp.data.log import Steps, join_steps


class Piece(NamedTuple):
    """Some rows of a file."""

    steps: Steps
    times: np.ndarray  # in seconds; row numbers, if the table has no time
    source: np.ndarray  # the row of the file, counted from 0

    def rows(self, which: Any) -> "Piece":
        return Piece(self.steps.rows(which), self.times[which], self.source[which])


def join_pieces(parts: list[Piece]) -> Piece:
    return Piece(
        join_steps([part.steps for part in parts]),
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.source for part in parts]),
    )


def with_following(pieces: Iterator[Piece]) -> Iterator[tuple[Piece, Piece | None]]:
    """Yield each piece together with the one after it."""
    before: Piece | None = None
    for piece in pieces:
        if not len(piece.times):
            continue
        if before is not None:
            yield before, piece
        before = piece
    if before is not None:
        yield before, None
