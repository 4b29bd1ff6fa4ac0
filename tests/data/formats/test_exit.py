"""Arrow's threads hold nothing of Python's when a command ends: they would abort the process."""

import gzip
import json
import os
import shutil
import subprocess
import sys

import pytest

# Threads other than the main one sleep after they have woken another, and before they wait for the interpreter, as
# they do when the machine is busy. Without it, one in hundreds of refused commands aborted.
BUSY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_main(void) { return syscall(SYS_gettid) == getpid(); }

int pthread_cond_broadcast(pthread_cond_t *condition) {
    static int (*real)(pthread_cond_t *);
    if (!real) real = dlvsym(RTLD_NEXT, "pthread_cond_broadcast", "GLIBC_2.3.2");
    if (!real) real = dlsym(RTLD_NEXT, "pthread_cond_broadcast");
    int result = real(condition);
    if (!is_main()) usleep(2000);
    return result;
}

int PyGILState_Ensure(void) {
    static int (*real)(void);
    if (!real) real = dlsym(RTLD_NEXT, "PyGILState_Ensure");
    if (!is_main()) {
        if (write(2, "a thread waits for Python\n", 26)) usleep(40000);
    }
    return real();
}
"""
WAITS = "a thread waits for Python"
CONTROL = "import pyarrow as pa, pyarrow.csv as c\nfor _ in range(20): c.read_csv(pa.BufferReader(b'a,b\\n'))"
ROWS = [f"{i % 7},{i % 3},1,{i // 50}" for i in range(300)]
TEXT = "\n".join(["observation_x,action_y,reward,episode", *ROWS, "1,1,1,", *ROWS]) + "\n"
JSON = [json.dumps(dict(zip(TEXT.split("\n")[0].split(","), row.split(","), strict=True))) for row in ROWS]
FILES = {
    "a.csv": TEXT.encode(),
    "b.csv": TEXT.encode("utf-16"),
    "c.csv.gz": gzip.compress(TEXT.encode()),
    "d.jsonl": "\n".join(JSON).encode(),
}


@pytest.fixture(scope="module")
def run_busy(tmp_path_factory):
    """Run Python with late threads."""
    if sys.platform != "linux" or not shutil.which("gcc"):
        pytest.skip("needs Linux and gcc")
    folder = tmp_path_factory.mktemp("busy")
    (folder / "busy.c").write_text(BUSY, encoding="utf-8")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "busy.so", "busy.c", "-ldl"], cwd=folder, check=True)

    def run(*words):
        environment = {**os.environ, "LD_PRELOAD": str(folder / "busy.so")}
        return subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=False)

    if WAITS not in run("-c", CONTROL).stderr:
        pytest.skip("this Python cannot be slowed down")
    return run


@pytest.mark.parametrize(("name", "options"), [*((name, []) for name in FILES), ("a.csv", ["--operator-column", "no"])])
def test_a_refused_file_ends_with_one_line(run_busy, tmp_path, name, options):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    for _ in range(3):
        done = run_busy("-m", "edp", "data", "check", str(path), *options)
        assert done.stderr.startswith(f"edp: {path}: ") and done.stderr.count("\n") == 1, done.stderr
        assert done.returncode == 2
