"""The share of noise in the actions of data sets (see ``edp.data.smoothness``).

python benchmarks/noise.py TASK … [--json results/noise_share.json]
"""

import argparse
from pathlib import Path

from edp.data import formats
from edp.data.dataset import read_dataset
from edp.data.locate import find_task_file
from edp.data.smoothness import noise_share
from edp.data.tasks import get_task
from edp.files import write_json


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--json", type=Path)
    values = parser.parse_args()
    results = []
    for name in values.tasks:
        task = get_task(name)
        dataset = read_dataset(formats.open_log(str(find_task_file(task)), {}, task.episode_limit), task.episode_return)
        row = {"task": name, "rows": len(dataset.reward), "noise_share": round(noise_share(dataset), 3)}
        results.append(row | {"regenerated": bool(dataset.regenerated)})
        print(*row.values(), flush=True)
    if values.json:
        write_json(values.json, results)


if __name__ == "__main__":
    main()
