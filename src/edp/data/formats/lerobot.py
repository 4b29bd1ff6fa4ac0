"""LeRobot's data sets (versions 2.0 to 3.0): folders with ``meta/info.json`` and tables of frames.

Only features that are one number or a vector in each frame are read. Frames come from ``data/*/*.parquet`` in the order
of the files' names, as LeRobot itself reads them.

LeRobot writes ``next.done`` at every end of an episode, also at a time limit. A frame is therefore terminal only if
``next.done`` is true and another column explains it: ``next.truncated`` is false or, without that column,
``next.success`` is true. Otherwise the episode was cut off. ``terminal_column`` overrides this.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from edp.data.checks import check_flags, refuse_other_count
from edp.data.formats import Format
from edp.data.formats.arrow import Place, arrow_numbers, refuse_empty_cells, stack_columns
from edp.data.formats.columns import ChosenColumns, choose_columns, columns_from
from edp.data.formats.lerobot_info import Feature, Info, check_inside, read_info
from edp.data.log import PIECE, Log, Steps
from edp.errors import UserError, counted, first_line, printable

EPISODE, FRAME = "episode_index", "frame_index"
REWARD, DONE, TRUNCATED, SUCCESS = "next.reward", "next.done", "next.truncated", "next.success"
CHOICES = ("observation_columns", "action_columns", "reward_column", "terminal_column")
NUMBERS = 2**24  # at a time
READ_ERRORS = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError)


class Ends(NamedTuple):
    """The columns that say where episodes end by themselves: where ``done`` is true, and the other one agrees."""

    done: str = ""
    unless: str = ""  # a column of time limits
    only_if: str = ""

    def terminals(self, flags: Mapping[str, np.ndarray], count: int) -> np.ndarray:
        ended = flags[self.done].copy() if self.done else np.zeros(count, bool)
        if self.unless:
            ended &= ~flags[self.unless]
        return ended & flags[self.only_if] if self.only_if else ended


class Source(NamedTuple):
    """What is read of a data set."""

    path: Path
    info: Info
    files: list[Path]
    observations: list[Feature]
    actions: list[Feature]
    reward: str
    ends: Ends

    @property
    def columns(self) -> list[str]:
        wide = [feature.key for feature in (*self.observations, *self.actions)]
        return [*dict.fromkeys([*wide, *filter(None, (self.reward, *self.ends)), EPISODE, FRAME])]


def open_lerobot(path: Path, given: Mapping[str, Any]) -> Log:
    info = read_info(path)
    features = info.features
    chosen = choose_features(path, features, given)
    source = Source(
        path=path,
        info=info,
        files=data_files(path),
        observations=[features[key] for key in chosen.observation_columns],
        actions=[features[key] for key in chosen.action_columns],
        reward=chosen.reward_column,
        ends=choose_ends(chosen, features),
    )
    return Log(
        name=str(path),
        pieces=lambda: lerobot_pieces(source),
        size=info.frames,
        observation_names=name_numbers(source.observations, "observation."),
        action_names=name_numbers(source.actions, "action."),
        left_out=tuple(describe_left_out(source)),
    )


def choose_features(path: Path, features: Mapping[str, Feature], given: Mapping[str, Any]) -> ChosenColumns:
    """Choose features as the columns of a table are chosen, with LeRobot's names as the defaults."""
    for name in given:
        if name not in CHOICES:
            raise UserError(f"{path}: `{name}` is not for a LeRobot data set, which has its own")
    numeric = [key for key, feature in features.items() if feature.width]
    defaults = {
        "observation_columns": tuple(key for key in numeric if key.startswith("observation.")),
        "action_columns": tuple(key for key in numeric if key == "action")
        or tuple(key for key in numeric if key.startswith("action.")),
        "reward_column": REWARD if REWARD in numeric else "",
    }
    for name in CHOICES[:2]:
        if not defaults[name] and name not in given:
            what = name.removesuffix("_columns")
            raise UserError(f"{path}: no {what} that is a number or a vector; images and videos are not read")
    for key in (EPISODE, FRAME):
        if key not in numeric:
            raise UserError(f"{path}: no feature {key!r} in meta/info.json")
    return choose_columns(columns_from(defaults | dict(given)), numeric, path)


def choose_ends(chosen: ChosenColumns, features: Mapping[str, Feature]) -> Ends:
    if chosen.terminal_column:
        return Ends(chosen.terminal_column)
    if DONE in features and TRUNCATED in features:
        return Ends(DONE, unless=TRUNCATED)
    return Ends(DONE, only_if=SUCCESS) if DONE in features and SUCCESS in features else Ends()


def name_numbers(features: list[Feature], prefix: str) -> tuple[str, ...]:
    """Name each number of some features, such as ``state.shoulder_pan``; the feature ``action`` adds no name."""
    return tuple(
        name if feature.key == "action" else f"{printable(feature.key).removeprefix(prefix)}.{name}"
        for feature in features
        for name in feature.names
    )


def describe_left_out(source: Source) -> list[str]:
    """List the features that are not used, first those that deserve a remark."""
    others = [feature for key, feature in source.info.features.items() if key not in source.columns]
    remarks = {feature.key: feature.kind for feature in others if not feature.width}
    if DONE not in source.ends:
        remarks[DONE] = "true at time limits too"
    if source.info.tasks > 1:
        remarks["task_index"] = f"{source.info.tasks:,} tasks, which the policy cannot tell apart"
    noted = [f"{printable(feature.key)} ({remarks[feature.key]})" for feature in others if feature.key in remarks]
    return [*noted, *(printable(feature.key) for feature in others if feature.key not in remarks)]


def data_files(path: Path) -> list[Path]:
    files = sorted(path.glob("data/*/*.parquet"))
    if not files:
        raise UserError(f"{path}: no data/*/*.parquet in this LeRobot data set; is the copy complete?")
    for file in files:
        check_inside(file, path)
    return files


def lerobot_pieces(source: Source) -> Iterator[Steps]:
    """Yield the steps of all files. The last frame of each episode is marked as a timeout, unless it is terminal.

    Each piece is yielded after the next one is read, which may begin with another episode.
    """
    before: Steps | None = None
    last, rows, episodes = None, 0, 0
    for file, batch, row in lerobot_batches(source):
        steps, position = steps_of_batch(batch, source, file, row), frame_positions(batch, file, row)
        starts = episode_starts(position, last, file, row)
        steps.timeouts[:-1] |= starts[1:] & ~steps.terminals[:-1]
        if before is not None:
            before.timeouts[-1] |= starts[0] & ~before.terminals[-1]
            yield before
        before, last = steps, position[-1]
        rows, episodes = rows + len(starts), episodes + int(starts.sum())
    if before is not None:
        before.timeouts[-1] |= ~before.terminals[-1]
        yield before
    refuse_other_count("frames", source.info.frames, rows, str(source.path))
    refuse_other_count("episodes", source.info.episodes, episodes, str(source.path))


def lerobot_batches(source: Source) -> Iterator[tuple[Path, pa.RecordBatch, int]]:
    """Yield the columns that are used, some rows at a time, with their file and their first row in it."""
    width = sum(feature.width for feature in (*source.observations, *source.actions))
    for file in source.files:
        row = 0
        try:
            with pq.ParquetFile(file, pre_buffer=False) as opened:
                missing = [name for name in source.columns if name not in opened.schema_arrow.names]
                if missing:
                    raise UserError(f"{file}: no column {missing[0]!r}, which meta/info.json names")
                for batch in opened.iter_batches(max(1, min(PIECE, NUMBERS // width)), columns=source.columns):
                    if batch.num_rows:
                        yield file, batch, row
                        row += batch.num_rows
        except READ_ERRORS as error:
            raise UserError(f"{file}: damaged, or not a Parquet file ({printable(first_line(error))})") from None


def steps_of_batch(batch: pa.RecordBatch, source: Source, file: Path, row: int) -> Steps:
    def wide(features: list[Feature]) -> np.ndarray:
        return stack_columns([feature_numbers(batch, feature, file, row) for feature in features])

    flags = {name: flag_column(batch, name, file, row) for name in source.ends if name}
    return Steps(
        wide(source.observations),
        wide(source.actions),
        single_column(batch, source.reward, file, row) if source.reward else np.zeros(batch.num_rows, np.float32),
        source.ends.terminals(flags, batch.num_rows),
        np.zeros(batch.num_rows, bool),
    )


def feature_numbers(batch: pa.RecordBatch, feature: Feature, file: Path, row: int) -> np.ndarray:
    numbers = arrow_numbers(batch.column(feature.key), feature.key, Place(file, row))
    width = numbers.shape[1] if numbers.ndim == 2 else 1
    if width != feature.width:
        raise UserError(
            f"{file}: {feature.key!r} has {counted(width, 'number')}, and meta/info.json says {feature.width}"
        )
    return numbers


def single_column(batch: pa.RecordBatch, name: str, file: Path, row: int) -> np.ndarray:
    """Return a column of one number in each row, which may be stored as a list."""
    numbers = arrow_numbers(batch.column(name), name, Place(file, row))
    if numbers.ndim == 2 and numbers.shape[1] > 1:
        raise UserError(f"{file}: column {name!r} holds lists, not one number in each row")
    return numbers.reshape(len(numbers))


def flag_column(batch: pa.RecordBatch, name: str, file: Path, row: int) -> np.ndarray:
    refuse_empty_cells(batch.column(name), name, Place(file, row))
    column = single_column(batch, name, file, row)
    check_flags(column, f"column {name!r}", str(file), Place(file, row).text)
    return column.astype(bool)


def frame_positions(batch: pa.RecordBatch, file: Path, row: int) -> np.ndarray:
    """Return the episode of each row and the number of its frame there."""
    return np.stack([single_column(batch, name, file, row) for name in (EPISODE, FRAME)], axis=1)


def episode_starts(position: np.ndarray, last: np.ndarray | None, file: Path, row: int) -> np.ndarray:
    """Mark the first frame of each episode, and check that the frames of an episode are all there and in order.

    ``last`` is the position before these rows.
    """
    before = np.concatenate([[[np.nan, 0.0]] if last is None else last[None], position[:-1]])
    starts = position[:, 0] != before[:, 0]
    wanted = np.where(starts, 0, before[:, 1] + 1)
    wrong = position[:, 1] != wanted
    if wrong.any():
        at = int(np.argmax(wrong))
        raise UserError(
            f"{file}: row {row + at} is frame {position[at, 1]:.0f} of episode {position[at, 0]:.0f}, and frame "
            f"{wanted[at]:.0f} should be there: frames are missing or mixed up"
        )
    return starts


FORMAT = Format(
    open=lambda name, columns, episode_limit: open_lerobot(Path(name), columns),
    named_columns=True,
)
