"""An adversary: kills, damaged run directories and malformed input.

    python benchmarks/faults.py [--kills 200] [--damages 500] [--fuzz 3000] [--seed 0] [--json results/faults.json]

- *kills*: a small run is killed with SIGKILL at random moments and resumed, until it ends; then its checkpoint and its
  logs are compared with those of a run that was not killed.
- *damages*: one file of a copy of a run is damaged (flipped bits, cut, zeroed, removed). Then the policy is loaded and
  acts, the run is evaluated, listed, reported and resumed.
- *fuzz*: a small file of each format is damaged and read.

A part with a count of 0 is left out, and its last result in the JSON file is kept.

Cases run in worker processes with limits of time and memory. A worker handles many cases, and is replaced after a crash
or a time-out. An error of one line is "noticed"; the same result as without damage is "harmless".
"""

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from edp.files import write_json

EPOCH, STEPS, OBS, ACT = 20, 200, 11, 3
SMALL = [
    *["--steps", STEPS, "--epoch-steps", EPOCH, "--eval-every", 100, "--checkpoint-every", EPOCH, "--episodes", 2],
    *["--hidden", "16,16", "--critic-hidden", "16,16", "--calls", 3, "--eas", 2, "--policy-target-after", 0],
    *["--preset", "edp", "--seeds", 2],
]
SECONDS, GIGABYTES = 120, 12  # limits of a case
FRESH = 50  # cases after which a worker is replaced, because JAX keeps all compiled programs
LOGS = ("metrics.jsonl", "evaluations.jsonl")


def command(*words: Any) -> list[str]:
    return [sys.executable, "-m", "edp", *map(str, words)]


def make_data(path: Path) -> Path:
    """Random transitions with the sizes of Hopper's."""
    rng, n = np.random.default_rng(0), 200
    with h5py.File(path, "w") as file:
        for name in ("observations", "next_observations"):
            file[name] = rng.standard_normal((n, OBS)).astype(np.float32)
        file["actions"] = rng.uniform(-1, 1, (n, ACT)).astype(np.float32)
        file["rewards"], file["terminals"] = rng.standard_normal(n), rng.random(n) < 0.02
        file["timeouts"] = np.zeros(n, bool)
    return path


def training(data: Path, out: Path) -> list[str]:
    return command("train", "hopper-medium-v2", "--data", data, "--out", out, *SMALL)


def arrays_of(folder: Path) -> str:
    from edp.runs import load
    from edp.runs.checkpoints import arrays_digest, leaves_by_name
    from edp.runs.directory import Run

    _, found = load.load_checkpoint(Run.open(folder))
    return arrays_digest({name: np.asarray(leaf) for name, leaf in leaves_by_name(found.tree).items()})


def contents(folder: Path) -> tuple[str, ...]:
    """What must be equal in a run that was killed and in one that was not: arrays, and the rows of training."""
    return arrays_of(folder), *(training_rows(folder / name) for name in LOGS)


def training_rows(path: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    return "".join(line for line in text.splitlines(keepends=True) if '"kind": "eval"' not in line)


def kill_runs(kills: int, data: Path, whole: Path, work: Path, rng: random.Random) -> dict[str, int]:
    """Kill a run at random moments, resume it until it ends, and begin again until there were enough kills."""
    found, out, started = Counter(tried=0, runs=0, identical=0, different=0, tracebacks=0), work / "killed", False
    wanted = contents(whole)
    while found["tried"] < kills or started:
        resumes = (out / "config.json").exists()
        words = command("train", "--resume", out) if resumes else training(data, out)
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        started = True
        if found["tried"] < kills and wait_for_moment(process, out, rng):
            process.kill()
            process.communicate()
            found["tried"] += 1
            continue
        _, said = process.communicate()
        found["tracebacks"] += "Traceback" in said
        found["runs"] += 1
        ended = process.returncode == 0 or "finished after" in said  # a kill may hit a run that has just finished
        same = ended and contents(out) == wanted
        found["identical" if same else "different"] += 1
        if not same:
            print(f"  killed and resumed, but different: {said[-500:]}", file=sys.stderr)
        shutil.rmtree(out)
        started = False
    return dict(found)


def wait_for_moment(process: subprocess.Popen, out: Path, rng: random.Random) -> bool:
    """Wait until some moment: any, after a row was written, or while a checkpoint is written. False if it ended."""
    how, rows = rng.randrange(3), rows_of(out)
    if how == 0:
        time.sleep(rng.uniform(0, 12))
    else:
        while process.poll() is None and (rows_of(out) <= rows or (how == 2 and not is_writing(out))):
            time.sleep(0.0005)
        time.sleep(rng.uniform(0, 0.05) if how == 1 else 0)
    return process.poll() is None


def rows_of(folder: Path) -> int:
    path = folder / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def is_writing(folder: Path) -> bool:
    return any("tmp" in entry.name for entry in (folder / "checkpoints").glob("*"))


def damage(content: bytes, rng: random.Random) -> bytes | None:
    """Damage the bytes of a file; None removes it."""
    how = rng.choice(["flip", "flip", "flip", "cut", "zero", "insert", "remove"])
    changed = bytearray(content)
    if how == "remove" or not content:
        return None
    at = rng.randrange(len(content))
    if how == "flip":
        changed[at] ^= 1 << rng.randrange(8)
    elif how == "cut":
        del changed[at:]
    elif how == "zero":
        width = min(rng.choice([1, 16, 512]), len(content) - at)
        changed[at : at + width] = bytes(width)
    else:
        changed[at:at] = rng.randbytes(rng.choice([1, 4, 64]))
    return bytes(changed)


class Damages:
    """Cases of damaged run directories. All that needs JAX happens in the worker."""

    def __init__(self, whole: Path, work: Path):
        self.whole, self.work = whole, work
        self.files = sorted(path for path in whole.rglob("*") if path.is_file() and path.name != ".lock")
        self.obs = np.random.default_rng(1).standard_normal((4, OBS))
        self.steps = sorted(int(path.name) for path in (whole / "checkpoints").iterdir())
        last = whole / "checkpoints" / str(self.steps[-1])
        self.used = [path for path in self.files if last in path.parents or path.parent == whole]
        self.good: dict[int, np.ndarray] = {}
        self.wanted: tuple[str, ...] = ()

    def prepare(self) -> None:
        import edp

        self.good = {step: edp.load_policy(self.whole, checkpoint=step).act(self.obs) for step in self.steps}
        self.wanted = contents(self.whole)

    def __call__(self, seed: int) -> dict[str, Any]:
        rng = random.Random(seed)
        folder = self.work / f"damaged-{os.getpid()}"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.whole, folder)
        file = rng.choice(rng.choice([self.files, self.used, self.used])).relative_to(self.whole)
        content = damage((folder / file).read_bytes(), rng)
        (folder / file).unlink()
        if content is not None:
            (folder / file).write_bytes(content)
        steps = [int(part) for part in file.parts if part.isdecimal()][:1]
        checks = [partial(self.act, steps=steps), self.evaluate, self.report, self.resume]
        results = [check(folder) for check in checks]
        shutil.rmtree(folder, ignore_errors=True)
        worst = worst_of(results)
        return {"kind": worst, "what": f"{file} ({worst} of {dict(zip(NAMES, results, strict=True))})"}

    def act(self, folder: Path, steps: list[int]) -> str:
        """Load the last policy, and that of the damaged checkpoint, and act."""
        return worst_of(self.act_with(folder, step) for step in (None, *steps))

    def act_with(self, folder: Path, step: int | None) -> str:
        """The actions must be those of the checkpoint, or of an earlier one with a warning, or there is an error."""
        import edp
        from edp.errors import UserError

        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                action = edp.load_policy(folder, checkpoint=step).act(self.obs)
            except UserError as error:
                return one_line(str(error))
        if np.array_equal(action, self.good[step or self.steps[-1]]):
            return "noticed" if warned else "harmless"
        return "noticed" if warned and any(np.array_equal(action, good) for good in self.good.values()) else "wrong"

    def evaluate(self, folder: Path) -> str:
        return run_command("eval", folder, "--episodes", 1)

    def report(self, folder: Path) -> str:
        page = self.work / f"report-{os.getpid()}.html"
        return worst_of([run_command("report", folder, "--out", page, "--overwrite"), run_command("runs", folder)])

    def resume(self, folder: Path) -> str:
        """Resume a finished run as if it had been killed: it ends with the same bytes, or there is a message."""
        (folder / "status.json").unlink(missing_ok=True)
        said = run_command("train", "--resume", folder, "--quiet")
        if LAST_CODE[0] != 0:
            return said
        same = contents(folder) == self.wanted
        if said == "harmless":
            return "harmless" if same else "wrong"
        return "noticed" if same or arrays_of(folder) == self.wanted[0] else "wrong"


KINDS = ("traceback", "wrong", "noticed", "harmless")
NAMES = ("act", "eval", "report", "resume")
LAST_CODE = [0]


def worst_of(kinds: Iterable[str]) -> str:
    found = set(kinds)
    return next(kind for kind in KINDS if kind in found)


def run_command(*words: Any) -> str:
    """Run a command in this process. Anything but success or one line of error is a traceback."""
    from edp.cli import main

    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        LAST_CODE[0] = main([str(word) for word in words])
    said = errors.getvalue().splitlines()
    if LAST_CODE[0] == 2:
        return one_line(said[-1] if said else "")
    return "noticed" if said else "harmless"


def one_line(text: str) -> str:
    return "noticed" if text and len(text.splitlines()) == 1 and "Traceback" not in text else "traceback"


def small_arrays() -> dict[str, np.ndarray]:
    rng, n = np.random.default_rng(0), 12
    arrays: dict[str, Any] = {"observations": rng.standard_normal((n, 2)), "actions": rng.uniform(-1, 1, (n, 1))}
    return arrays | {"rewards": rng.standard_normal(n), "terminals": np.arange(n) % 6 == 5}


def write_inputs(folder: Path, whole: Path) -> dict[str, Path]:
    """A small file of every format, by name."""
    arrays, paths = small_arrays(), {name: folder / f"small.{name}" for name in ("csv", "parquet", "npz", "hdf5")}
    columns = {f"observation_{i}": arrays["observations"][:, i] for i in range(2)} | {
        "action_0": arrays["actions"][:, 0],
        "reward": arrays["rewards"],
        "terminal": arrays["terminals"].astype(int),
        "episode": np.arange(12) // 6,
    }
    rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    paths["csv"].write_text("\n".join(rows) + "\n", encoding="utf-8")
    pq.write_table(pa.table(columns), paths["parquet"], row_group_size=5)
    np.savez(paths["npz"], **arrays)
    with h5py.File(paths["hdf5"], "w") as file:
        for name, array in arrays.items():
            file[name] = array
    tables = folder / "tables"
    tables.mkdir()
    shutil.copy(paths["csv"], tables / "a.csv")
    text = 'observations = ["observation_0", "observation_1"]\nactions = ["action_0"]\nreward = "reward"\n'
    (tables / "columns.toml").write_text(text + 'terminal = "terminal"\nepisode = "episode"\n', encoding="utf-8")
    return paths | {
        "columns.toml": tables / "columns.toml",
        "config.json": whole / "config.json",
        "evaluations.jsonl": whole / "evaluations.jsonl",
    }


class Fuzz:
    """Cases of damaged input, of one format each."""

    def __init__(self, work: Path, whole: Path):
        self.work, self.whole = work, whole
        self.inputs = write_inputs(work, whole)

    def prepare(self) -> None:
        self.contents = {name: path.read_bytes() for name, path in self.inputs.items()}

    def __call__(self, seed: int) -> dict[str, Any]:
        rng = random.Random(seed)
        name = list(self.inputs)[seed % len(self.inputs)]
        content = self.contents[name]
        for _ in range(rng.choice([1, 1, 2, 4])):
            content = damage(content, rng) or content
        folder = self.work / f"fuzz-{os.getpid()}"
        shutil.rmtree(folder, ignore_errors=True)
        if name in ("config.json", "evaluations.jsonl"):
            shutil.copytree(self.whole, folder, ignore=shutil.ignore_patterns("checkpoints"))
            (folder / name).write_bytes(content)
            kind = run_command("runs", folder)
        else:
            folder.mkdir()
            place = folder / f"small.{name}"
            if name == "columns.toml":
                shutil.copy(self.inputs["csv"], folder / "a.csv")
                place = folder / name
            place.write_bytes(content)
            kind = read_data(folder if name == "columns.toml" else place)
        shutil.rmtree(folder, ignore_errors=True)
        return {"kind": kind, "what": name}


def read_data(place: Path) -> str:
    """Read data as training does. What is read must be finite."""
    from edp.data import formats
    from edp.data.dataset import read_dataset
    from edp.errors import UserError

    try:
        data = read_dataset(formats.open_log(str(place), {}))
    except UserError as error:
        return one_line(str(error))
    return "harmless" if all(np.isfinite(part).all() for part in data[:5]) else "wrong"


def work_through(cases: Callable[[int], dict], pipe: Any) -> None:
    """Answer cases until the pipe is closed. The first answer says that the worker is ready."""
    resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES * 10**9,) * 2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    cases.prepare()  # pyright: ignore[reportFunctionMemberAccess]
    pipe.send(None)
    while (seed := pipe.recv()) is not None:
        try:
            answer = cases(seed)
        except BaseException as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{type(error).__name__}: {str(error)[:200]} at {Path(last.filename).name}:{last.lineno}"
            answer = {"kind": "traceback", "what": f"{where} (case {seed})"}
        pipe.send(answer)


class Worker:
    """A process that answers cases, and is replaced when it crashes or hangs."""

    def __init__(self, cases: Callable[[int], dict]):
        self.cases, self.process = cases, None

    def answer(self, seed: int) -> dict[str, Any]:
        if self.process is None:
            self.start()
        self.pipe.send(seed)
        return self.receive(SECONDS) or {"kind": self.stop(), "what": f"case {seed}"}

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work_through, args=(self.cases, theirs), daemon=True)
        self.process.start()
        theirs.close()
        if self.pipe.poll(600):
            self.pipe.recv()

    def receive(self, seconds: float) -> dict[str, Any] | None:
        """The answer; None if there was none in time, or the process has ended."""
        try:
            return self.pipe.recv() if self.pipe.poll(seconds) else None
        except EOFError:
            return None

    def stop(self) -> str:
        """End the process. Says whether it hung or had crashed."""
        assert self.process is not None
        hangs = self.process.is_alive()
        self.process.kill()
        self.process.join()
        self.process = None
        return "hang" if hangs else "crash"


def run_cases(cases: Callable[[int], dict], count: int, seed: int) -> dict[str, Any]:
    """Run cases one after another. Returns how many there were of each kind, and those that went wrong."""
    worker, kinds, bad = Worker(cases), Counter(), []
    for case in progress(count):
        if case % FRESH == FRESH - 1 and worker.process is not None:
            worker.stop()
        answer = worker.answer(seed * 1_000_003 + case)
        kinds[answer["kind"]] += 1
        if answer["kind"] not in ("noticed", "harmless"):
            bad.append(f"{answer['kind']}: {answer['what']}")
            print(f"  {bad[-1]}", file=sys.stderr, flush=True)
    if worker.process is not None:
        worker.stop()
    names = {"tracebacks": "traceback", "hangs": "hang", "crashes": "crash", "silently_wrong": "wrong"}
    found = {"tried": count, "noticed": kinds["noticed"], "harmless": kinds["harmless"]}
    found["survived"] = found["noticed"] + found["harmless"]
    return found | {name: kinds[kind] for name, kind in names.items()} | {"examples": bad[:20]}


def progress(count: int) -> Iterator[int]:
    for case in range(count):
        if case % 100 == 0 and case:
            print(f"  {case} of {count}", file=sys.stderr, flush=True)
        yield case


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, count in (("kills", 200), ("damages", 500), ("fuzz", 3000), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=count)
    parser.add_argument("--json", type=Path)
    values = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        os.environ.setdefault("EDP_CACHE", str(work / "cache"))
        os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(work / "compiled"))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        data, whole = make_data(work / "data.hdf5"), work / "whole"
        subprocess.run(training(data, whole), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        parts: dict[str, Callable[[], dict[str, Any]]] = {
            "fuzz": lambda: run_cases(Fuzz(work, whole), values.fuzz, values.seed),
            "damages": lambda: run_cases(Damages(whole, work), values.damages, values.seed),
            "kills": lambda: kill_runs(values.kills, data, whole, work, random.Random(values.seed)),
        }
        known = values.json and values.json.exists()
        result = json.loads(values.json.read_text(encoding="utf-8")) if known else {}
        for name in (name for name in parts if getattr(values, name)):
            print(name, file=sys.stderr, flush=True)
            result[name] = {"seed": values.seed} | parts[name]()
            if values.json:
                write_json(values.json, result)
    print(json.dumps(result, indent=2))
    kinds = ("tracebacks", "hangs", "crashes", "silently_wrong", "different")
    sys.exit(1 if any(part.get(kind, 0) for part in result.values() for kind in kinds) else 0)


if __name__ == "__main__":
    main()
