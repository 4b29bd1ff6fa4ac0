"""Write the numbers of results/ into the documentation.

    python scripts/fill_docs.py [--check]

A part of a document between ``<!-- numbers: NAME -->`` and ``<!-- end -->`` is written here from what benchmarks wrote
down; a test fails where they differ.
"""

import argparse
import re
import sys

from doc_learning import critics, curves, narrow, noise_shares, selection, selection_of_recipe
from doc_results import ROOT
from doc_speed import (
    about,
    acting,
    bench,
    elsewhere,
    evaluation,
    exported,
    fast,
    later_pairs,
    memory,
    pairs,
    solvers,
    startup,
    steps,
    tables,
)
from doc_trust import faults, verdicts
from lever_runs import baselines, initial_noise, later, levers, likelihoods, targets
from recipe_runs import recipe_commands, recipe_scores, recipe_times

DOCUMENTS = (
    "README.md",
    "docs/evaluation.md",
    "docs/performance.md",
    "docs/recipe.md",
    "docs/reliability.md",
    "docs/results.md",
)

MARKED = re.compile(r"(<!-- numbers: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

PARTS = (
    about,
    bench,
    steps,
    pairs,
    later_pairs,
    elsewhere,
    solvers,
    fast,
    startup,
    memory,
    tables,
    evaluation,
    acting,
    exported,
    verdicts,
    faults,
    curves,
    critics,
    selection,
    selection_of_recipe,
    noise_shares,
    narrow,
    recipe_scores,
    recipe_times,
    recipe_commands,
    levers,
    likelihoods,
    targets,
    baselines,
    initial_noise,
    later,
)


def filled(text: str) -> str:
    parts = {part.__name__: part for part in PARTS}
    return MARKED.sub(lambda found: f"{found[1]}{parts[found[2]]()}\n{found[3]}", text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if something would change")
    check = parser.parse_args().check
    stale = [name for name in DOCUMENTS if filled(text := (ROOT / name).read_text(encoding="utf-8")) != text]
    for name in stale:
        print(f"{name} differs from results/" if check else name)
        if not check:
            (ROOT / name).write_text(filled((ROOT / name).read_text(encoding="utf-8")), encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
