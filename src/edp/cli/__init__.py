"""The command line. All text is printed in this package."""

import gc
import io
import os
import sys
from contextlib import suppress
from importlib import import_module

import edp
from edp.cli.signals import EXIT_INTERRUPTED, ending_at_second_interrupt
from edp.errors import UserError, printable, unknown
from edp.files import keep_compiled_programs

HELP = """\
usage: edp COMMAND …

Train diffusion policies from logged data (Efficient Diffusion Policies, NeurIPS 2023).

commands:
  train TASK        train a policy on a task or on your own data; train --resume RUN continues a run
  eval RUN          evaluate the policies of a run, finished or running
  export RUN FILE   write a policy as ONNX, C or StableHLO, to run without JAX
  sweep FILE        train over a space of options, here or on a Ray cluster; sweep --resume DIR goes on
  runs              list runs: progress, score, state
  report RUN …      one page of any runs: tables, curves, what the policies do
  compare RUN RUN   which algorithm is better, and how certain that is
  ablate NAME RUN   a run's score over a range of one option of acting: the paper's ablations
  bench             how fast this machine trains and acts: the paper's efficiency figure
  data list         the tasks, and which of their files are here
  data get TASK     download D4RL's file for a task
  data make TASK    make a built-in set, a look-alike, or a new one
  data check DATA   examine your own data: what is in it, and what looks wrong
  data convert A B  write data in another format
  data record FILE  record episodes of any policy in any environment

options:
  -h, --help        this text; after a command, that command's options
  --version         the version

A first run:  edp train local/hopper-medium-expert --steps 10000
"""

COMMANDS = ("train", "sweep", "eval", "export", "runs", "report", "compare", "ablate", "bench", "data")
EXIT_USER_ERROR = 2
GARBAGE_THRESHOLD = 200_000  # objects between collections; with Python's 700, tracing in JAX takes 10 % longer


def entry() -> int:
    """The command ``edp``: ``main``, but for an interrupt, after which the process ends without any more cleaning up.

    Threads of libraries in C++ may still be at work then, for example at a compilation, and abort a process whose
    interpreter ends in the usual way.
    """
    try:
        return run_command()
    except KeyboardInterrupt:
        print("edp: interrupted", file=sys.stderr, flush=True)
        with suppress(OSError):
            sys.stdout.flush()
        os._exit(EXIT_INTERRUPTED)


def main(argv: list[str] | None = None) -> int:
    """Run a command in this process. Returns its exit code."""
    try:
        return run_command(argv)
    except KeyboardInterrupt:
        print("edp: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


def run_command(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    gc.set_threshold(GARBAGE_THRESHOLD)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # for terminals without Unicode
    try:
        with ending_at_second_interrupt():
            return dispatch(argv)
    except UserError as error:
        from edp.cli.parser import as_flags

        print(f"edp: {printable(as_flags(str(error)))}", file=sys.stderr)
        return EXIT_USER_ERROR
    except BrokenPipeError:  # the program that reads the output has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_USER_ERROR
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"edp: {printable(f'{where}{error.strerror or error}')}", file=sys.stderr)
        return EXIT_USER_ERROR


def dispatch(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        print(HELP, end="")
        return 0
    if argv[0] == "--version":
        print(f"edp {edp.__version__}")
        return 0
    command, rest = argv[0], argv[1:]
    if command not in COMMANDS:
        raise unknown("command", command, COMMANDS)
    keep_compiled_programs()
    return import_module(f"edp.cli.{command}").main(rest)
