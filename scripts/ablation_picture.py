"""The ablations of acting with policies of the recipe: docs/ablations/recipe.png, from results/ablations/recipe.

python scripts/ablation_picture.py

A folder there has the files that ``edp ablate eas RUN`` (and calls, scale, noise) wrote into the run's ``ablations/``.
"""

import json
from pathlib import Path

import numpy as np

from edp.drawing import COLOURS, GREY, drawing_style, save_figure

ROOT = Path(__file__).parent.parent
FOUND = {  # what the paper found
    "eas": "the paper: rises with the number",
    "calls": "the paper: rises up to 15, then stays",
    "scale": "the paper: 1 is best",
    "noise": "the paper: 0 is best, 1 worst",
}


def main() -> None:
    from matplotlib.figure import Figure

    folders = sorted(folder for folder in (ROOT / "results" / "ablations" / "recipe").iterdir() if folder.is_dir())
    with drawing_style():
        figure = Figure(figsize=(13, 3.2), layout="constrained")
        for axis, (name, paper) in zip(figure.subplots(1, len(FOUND)), FOUND.items(), strict=True):
            for folder, colour in zip(folders, COLOURS, strict=False):
                file = folder / f"{name}.json"
                if not file.exists():
                    continue
                content = json.loads(file.read_text(encoding="utf-8"))
                seeds = np.array([np.mean(scores, axis=1) for scores in content["scores"]])
                places = range(len(content["values"]))
                axis.fill_between(places, seeds.min(axis=1), seeds.max(axis=1), color=colour, alpha=0.15, lw=0)
                axis.plot(places, seeds.mean(axis=1), color=colour, marker=".", label=content["title"].split()[0])
                axis.set_xticks(places, [f"{value:g}" for value in content["values"]])
                axis.set_xlabel(content["label"])
            axis.set_ylim(0, 105)
            axis.set_title(paper, fontsize=9, color=GREY)
        figure.axes[0].set_ylabel("normalised score")
        figure.axes[1].legend(frameon=False, fontsize=8, loc="lower left")  # of the axes, this one has all tasks
        save_figure(figure, ROOT / "docs" / "ablations" / "recipe.png")


if __name__ == "__main__":
    main()
