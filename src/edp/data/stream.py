"""Transitions as rows of one array: whole on the device, or one block at a time if they are too many.

A block consists of runs of neighbouring rows, which are quick to read from a file. The runs depend only on the seed and
the number of the block, so a resumed training sees the same blocks. Every pass over the data set uses every run once,
in a new order and from a new offset. Each row is equally likely to be drawn.
"""

from concurrent.futures import Future, ThreadPoolExecutor

import jax
import numpy as np

from edp.batches import Layout, Packed, Transitions
from edp.data.dataset import temporary_file
from edp.data.log import PIECE
from edp.errors import UserError
from edp.files import cache_folder

RUN = 256  # neighbouring rows in a run, at most
RUNS = 64  # runs in a block, at least


def layout_of(data: Transitions) -> Layout:
    columns, structure = jax.tree.flatten(data)
    return Layout(structure, tuple(column.shape[1] if column.ndim == 2 else 0 for column in columns))


def pack(data: Transitions, on_disk: bool = False) -> Packed:
    """Put the columns into one array, in memory or in a temporary file of the cache folder."""
    columns, layout = jax.tree.leaves(data), layout_of(data)
    shape = len(columns[0]), sum(width or 1 for width in layout.widths)
    rows = file_backed(shape) if on_disk else np.empty(shape, np.float32)
    for start in range(0, shape[0], PIECE):
        piece = slice(start, start + PIECE)
        parts = [column[piece].reshape(len(rows[piece]), -1) for column in columns]
        np.concatenate(parts, axis=1, out=rows[piece])
    return Packed(rows, layout)


def file_backed(shape: tuple[int, int]) -> np.ndarray:
    try:
        with temporary_file() as file:  # the mapping keeps the file open
            return np.memmap(file, np.float32, "w+", shape=shape)
    except OSError as error:
        size = f"{4 * shape[0] * shape[1] / 1e9:.1f} GB"
        raise UserError(f"{cache_folder()}: no room for {size} of transitions to stream ({error.strerror})") from None


class Blocks:
    """Blocks of packed rows that are too many for the device. The next block is read while one is in use."""

    def __init__(self, data: Packed, size: int, seed: int, place):
        self.data, self.seed, self.place = data, seed, place
        self.run = min(RUN, max(1, size // RUNS))  # rows in a run
        self.runs = -(-len(data.rows) // self.run)  # runs in the data set
        self.each = size // self.run  # runs in a block
        self.reader = ThreadPoolExecutor(1, "edp-blocks")
        self.ahead: dict[int, Future[Packed]] = {}

    def __call__(self, number: int) -> Packed:
        """Return a block on the device."""
        wanted = self.ahead.pop(number, None) or self.reader.submit(self.read, number)
        block = wanted.result()
        self.ahead = {number + 1: self.reader.submit(self.read, number + 1)}
        return block

    def read(self, number: int) -> Packed:
        rows = self.data.rows.take(self.rows_of(number).ravel(), axis=0)
        return self.place(Packed(rows, self.data.layout))

    def rows_of(self, number: int) -> np.ndarray:
        """Return the rows of a block, (runs, neighbours). Row numbers wrap around at the end of the data set."""
        places = np.arange(number * self.each, (number + 1) * self.each)
        starts = np.empty(self.each, np.int64)
        for which in np.unique(places // self.runs):
            rng, here = np.random.default_rng((self.seed, which)), places // self.runs == which
            offset, order = rng.integers(len(self.data.rows)), rng.permutation(self.runs)
            starts[here] = offset + self.run * order[places[here] % self.runs]
        return (starts[:, None] + np.arange(self.run)[None]) % len(self.data.rows)
