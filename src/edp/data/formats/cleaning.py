"""Rows of a table made fit for training: averaged over time, with empty cells filled or left out."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from edp.data.formats.columns import CALENDAR
from edp.data.formats.pieces import Piece, join_pieces, with_following
from edp.data.log import Steps

REDUCE = {"sum": np.add, "min": np.fmin, "max": np.fmax}
PARTS = ("observations", "actions", "rewards", "next_observations")  # of steps, with numbers that may be missing


def resampled(pieces: Iterator[Piece], every: float, ways: Mapping[str, list[str]]) -> Iterator[Piece]:
    """Make one row of the rows of each ``every`` seconds. Ends of episodes are kept.

    ``ways`` has, for each part of the steps, how each of its columns is reduced.
    """
    held: Piece | None = None
    for piece in pieces:
        piece = piece if held is None else join_pieces([held, piece])
        slot = np.floor(piece.times / every + 1e-9)
        starts = np.flatnonzero(np.append(True, (slot[1:] != slot[:-1]) | piece.steps.ends[:-1]))
        last = int(starts[-1])  # its rows may go on in the next piece
        if last:
            yield reduced(piece.rows(slice(0, last)), starts[:-1], slot * every, ways)
        held = piece.rows(slice(last, None))
    if held is not None:
        yield reduced(held, np.zeros(1, int), np.floor(held.times / every + 1e-9) * every, ways)


def reduced(piece: Piece, starts: np.ndarray, times: np.ndarray, ways: Mapping[str, list[str]]) -> Piece:
    """Make one row of the rows from each start to the next."""
    changes = {name: np.logical_or.reduceat(getattr(piece.steps, name), starts) for name in ("terminals", "timeouts")}
    for name in PARTS:
        part = getattr(piece.steps, name)
        if part is not None:
            wide = part.reshape(len(part), -1)
            columns = [reduce_column(wide[:, i], starts, way) for i, way in enumerate(ways[name])]
            changes[name] = np.stack(columns, axis=1).reshape(len(starts), *part.shape[1:])
    if piece.steps.operators is not None:
        changes["operators"] = piece.steps.operators[starts]
    return Piece(piece.steps._replace(**changes), times[starts], piece.source[starts])


def reduce_column(column: np.ndarray, starts: np.ndarray, way: str) -> np.ndarray:
    """Reduce the known numbers of each group; a group without one has NaN."""
    known = np.isfinite(column)
    count = np.add.reduceat(known.astype(int), starts)
    if way in ("first", "last"):
        rows = np.arange(len(column))
        if way == "last":
            at = np.maximum.reduceat(np.where(known, rows, -1), starts)
        else:
            at = np.minimum.reduceat(np.where(known, rows, len(column) - 1), starts)
        return np.where(count > 0, column[at], np.nan)
    if way == "mean":
        return np.where(count > 0, np.add.reduceat(np.where(known, column, 0.0), starts) / np.maximum(count, 1), np.nan)
    neutral = 0.0 if way == "sum" else np.nan
    return np.where(count > 0, REDUCE[way].reduceat(np.where(known, column, neutral), starts), np.nan)


def without_missing(
    pieces: Iterator[Piece], ways: Mapping[str, list[str]], names: Mapping[str, list[str]], counts: Counter[str]
) -> Iterator[Piece]:
    """Fill empty cells with the number above, or leave their rows out, as ``ways`` says for each column.

    Cells are filled within an episode only, and rows that cannot be filled are left out. An episode ends as a timeout
    where rows are left out. ``counts`` counts what was done.
    """
    filled = with_filled_cells(pieces, ways, names, counts)
    return leave_out(filled, lambda piece: rows_to_drop(piece.steps, ways), counts)


def leave_out(pieces: Iterator[Piece], marks: Callable[[Piece], np.ndarray], counts: Counter[str]) -> Iterator[Piece]:
    """Leave out the rows with ``marks``, and count them. An episode ends as a timeout before them."""
    for piece, following in with_following(pieces):
        left_out = marks(piece)
        next_left_out = following is not None and bool(marks(following)[0])
        before = np.append(left_out[1:], next_left_out) & ~left_out & ~piece.steps.terminals
        counts["rows left out"] += int(left_out.sum())
        piece.steps.timeouts[:] |= before
        if not left_out.all():
            yield piece.rows(~left_out)


def with_filled_cells(
    pieces: Iterator[Piece], ways: Mapping[str, list[str]], names: Mapping[str, list[str]], counts: Counter[str]
) -> Iterator[Piece]:
    last: Piece | None = None
    for piece in pieces:
        held = last is not None and not last.steps.ends[-1]
        whole = join_pieces([last, piece]) if last is not None and held else piece
        starts = np.append(True, whole.steps.ends[:-1])
        for name in PARTS:
            part = getattr(whole.steps, name)
            if part is None:
                continue
            for i, way in enumerate(ways[name]):
                if way == "ffill":
                    column = part[:, i] if part.ndim == 2 else part
                    filled = fill_forward(column, starts)
                    counts[f"cells of {names[name][i]!r} filled"] += filled if names[name][i] else 0
        piece = whole.rows(slice(1, None)) if held else whole
        yield piece
        last = piece.rows(slice(-1, None))


def fill_forward(column: np.ndarray, starts: np.ndarray) -> int:
    """Fill missing numbers in place with the last one known since a start, and count them."""
    rows, known = np.arange(len(column)), ~np.isnan(column)
    above = np.maximum.accumulate(np.where(known, rows, 0))
    first = np.maximum.accumulate(np.where(starts, rows, 0))
    fillable = ~known & (above >= first) & known[above]
    column[fillable] = column[above[fillable]]
    return int(fillable.sum())


def rows_to_drop(steps: Steps, ways: Mapping[str, list[str]]) -> np.ndarray:
    """Mark the rows with an empty cell in a column in which it is not refused."""
    marks = np.zeros(len(steps.rewards), bool)
    for name in PARTS:
        part = getattr(steps, name)
        if part is not None:
            chosen = [i for i, way in enumerate(ways[name]) if way != "refuse"]
            marks |= np.isnan(part.reshape(len(part), -1)[:, chosen]).any(axis=1)
    return marks


def with_calendar(pieces: Iterator[Piece], calendar: tuple[str, ...]) -> Iterator[Piece]:
    """Append the sine and the cosine of the time to the observations."""
    for piece in pieces:
        columns = [piece.steps.observations, *(calendar_columns(piece.times, name) for name in calendar)]
        yield piece._replace(steps=piece.steps._replace(observations=np.concatenate(columns, axis=1)))


def calendar_columns(times: np.ndarray, name: str) -> np.ndarray:
    """The position within a day, a week (from Monday on) or a year as sine and cosine."""
    first = -3 * 86_400.0 if name == "weekday" else 0.0  # 1970 began on a Thursday
    angle = 2 * np.pi * ((times - first) % CALENDAR[name]) / CALENDAR[name]
    return np.stack([np.sin(angle), np.cos(angle)], axis=1)


def calendar_names(calendar: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name}_{wave}" for name in calendar for wave in ("sin", "cos"))
