"""Reading a large Parquet file in a streaming way: how fast, beside pyarrow's own read, and in how much memory.

    python benchmarks/tables.py --rows 50000000 --json results/tables.json

Each reader runs in a separate process, in turns. ``pyarrow, streaming`` decodes the same columns batch by
batch and keeps nothing (but it reads the file ahead into memory, unless it is told not to: ``without buffer``);
``pyarrow, kept`` reads the table whole. ``edp`` makes transitions (observations in rows, next
observations, episodes) in files that go away with the process, as ``edp train --block`` does; ``edp, in memory`` makes
them in memory. Memory is what the process itself holds (anonymous), not pages of files that the system may drop.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

OBSERVATIONS, ACTIONS, LENGTH, BATCH = 17, 6, 1000, 1_000_000

READ = """
import json, resource, sys, threading, time
from pathlib import Path
def held():
    lines = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    return int(lines["RssAnon"].split()[0]) / 1e6
way, file, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
import pyarrow.parquet as pq
from edp.data.dataset import read_dataset
from edp.data.formats.table import open_table
names = [name for name in pq.ParquetFile(file).schema_arrow.names]
before, most, over = held(), 0.0, threading.Event()
def watch():
    global most
    while not over.wait(0.05):
        most = max(most, held())
watcher = threading.Thread(target=watch)
watcher.start()
start = time.perf_counter()
if way.startswith("pyarrow, streaming"):
    reader = pq.ParquetFile(file, pre_buffer=way == "pyarrow, streaming")
    count = sum(batch.num_rows for batch in reader.iter_batches(65_536, columns=names))
elif way == "pyarrow, kept":
    kept = pq.read_table(file)
    count = kept.num_rows
else:
    data = read_dataset(open_table(Path(file)), on_disk=way == "edp")
    count = len(data.obs)
seconds = time.perf_counter() - start
over.set()
watcher.join()
print(json.dumps({"seconds": seconds, "gigabytes": max(most, held()) - before, "rows": count}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the file is made (default: the system's temporary folder)")
    parser.add_argument("--json", type=Path, help="write the result here")
    values = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=values.folder) as folder:
        result = {"rows": values.rows, "columns": OBSERVATIONS + ACTIONS + 2, **measure(values, Path(folder))}
    print(json.dumps(result, indent=2))
    if values.json:
        values.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def measure(values: argparse.Namespace, folder: Path) -> dict:
    file = folder / "steps.parquet"
    numbers = make(file, values.rows)
    ways = ["pyarrow, streaming", "pyarrow, streaming without buffer", "edp"]
    if values.rows <= 10_000_000:  # the others hold all of it
        ways += ["pyarrow, kept", "edp, in memory"]
    found: dict[str, list[dict]] = {way: [] for way in ways}
    for _ in range(values.rounds):
        for way in ways:
            command = [sys.executable, "-c", READ, way, str(file), str(values.rows)]
            found[way].append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    assert {row["rows"] for row in found["pyarrow, streaming"]} == {values.rows}
    about = {"file_megabytes": round(file.stat().st_size / 1e6), "megabytes_of_numbers": round(numbers / 1e6)}
    for way, rows in found.items():
        seconds = [row["seconds"] for row in rows]
        about[way] = {
            "seconds": [round(second, 1) for second in seconds],
            "megabytes_per_second": round(numbers / 1e6 / float(np.median(seconds))),
            "most_gigabytes": round(max(row["gigabytes"] for row in rows), 2),
            "transitions": rows[0]["rows"],
        }
    pairs = zip(found["edp"], found["pyarrow, streaming without buffer"], strict=True)
    return about | {"edp_over_pyarrow": [round(ours["seconds"] / theirs["seconds"], 2) for ours, theirs in pairs]}


def make(file: Path, rows: int) -> int:
    """A table of random walks, written batch by batch; gives the bytes of its numbers."""
    rng, total, started = np.random.default_rng(0), 0, time.perf_counter()
    writer = None
    for start in range(0, rows, BATCH):
        count = min(BATCH, rows - start)
        step = np.arange(start, start + count)
        walk = rng.standard_normal((count, OBSERVATIONS), np.float32)
        columns = {f"observation_{i}": np.ascontiguousarray(walk[:, i]) for i in range(OBSERVATIONS)}
        acted = rng.uniform(-1, 1, (ACTIONS, count)).astype(np.float32)
        columns |= {f"action_{i}": acted[i] for i in range(ACTIONS)}
        columns |= {"reward": walk[:, 0].copy(), "episode": (step // LENGTH).astype(np.int32)}
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(file, table.schema, compression="snappy", use_dictionary=["episode"])
        writer.write_table(table)
        total += table.nbytes
    assert writer is not None
    writer.close()
    print(f"made {file.stat().st_size / 1e9:.1f} GB in {time.perf_counter() - started:.0f} s", file=sys.stderr)
    return total


if __name__ == "__main__":
    main()
