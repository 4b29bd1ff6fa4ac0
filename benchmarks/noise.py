"""The share of noise in the actions of data sets, and how often the reward changes (see ``edp.data.smoothness``).

Rows of other tasks stay in the file.

python benchmarks/noise.py TASK … [--json results/noise_share.json]
"""

import argparse
import json
from pathlib import Path

from edp.data import formats
from edp.data.dataset import read_dataset
from edp.data.locate import find_task_file
from edp.data.smoothness import noise_share, reward_changes
from edp.data.tasks import get_task
from edp.files import write_json


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--json", type=Path)
    values = parser.parse_args()
    known = json.loads(values.json.read_text(encoding="utf-8")) if values.json and values.json.exists() else []
    results = {row["task"]: row for row in known}
    for name in values.tasks:
        task = get_task(name)
        dataset = read_dataset(formats.open_log(str(find_task_file(task)), {}, task.episode_limit), task.episode_return)
        row = {"task": name, "rows": len(dataset.reward), "noise_share": round(noise_share(dataset), 3)}
        row["reward_changes"] = round(reward_changes(dataset), 4)
        results[name] = row | {"regenerated": bool(dataset.regenerated)}
        print(*row.values(), flush=True)
    if values.json:
        write_json(values.json, list(results.values()))


if __name__ == "__main__":
    main()
