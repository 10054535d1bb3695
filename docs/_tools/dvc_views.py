"""Draw dvc-plots.png: what ``dvc plots diff`` shows of the revisions that are named.

Those of the picture are made by ``dvc exp run -n q$q -S labeler.q=$q`` for q in 4.5 5 5.5 6 6.5.
"""

import io
import json
import subprocess
import sys
from pathlib import Path

import vl_convert
from PIL import Image

FOLDER = Path(__file__).parents[1] / "images"
SHOWN = ["accuracy", "sweep: clusters over q", "sweep: labels over q", "sweep: accuracy over q"]
SHOWN += ["results/pretrain/pruned.csv", "results/label/pruned_sizes.csv"]
WIDTH, HEIGHT, GAP = 330, 220, 30


def plots(revisions: list[str]) -> dict[str, Image.Image]:
    """Return the plots of the revisions, as DVC describes them and Vega draws them."""
    done = subprocess.run(["dvc", "plots", "diff", "--json", *revisions], capture_output=True, text=True, check=True)
    found = {}
    for name, charts in json.loads(done.stdout)["data"].items():
        for chart in charts:
            if chart["type"] == "vega":
                content = chart["content"]
                spec = json.loads(content) if isinstance(content, str) else content
                spec |= {"width": WIDTH, "height": HEIGHT}
                found[name] = Image.open(io.BytesIO(vl_convert.vegalite_to_png(spec, scale=1.5)))
    return found


def beside_each_other(images: list[Image.Image], columns: int) -> Image.Image:
    """Place images in rows on white."""
    rows = [images[start : start + columns] for start in range(0, len(images), columns)]
    width = max(sum(image.width + GAP for image in row) for row in rows)
    heights = [max(image.height for image in row) + GAP for row in rows]
    sheet = Image.new("RGB", (width + GAP, sum(heights) + GAP), "white")
    top = GAP
    for row, height in zip(rows, heights, strict=True):
        left = GAP
        for image in row:
            sheet.paste(image, (left, top))
            left += image.width + GAP
        top += height
    return sheet


if __name__ == "__main__":
    drawn = plots(sys.argv[1:])
    sheet = beside_each_other([drawn[name] for name in SHOWN], 2)
    sheet.save(FOLDER / "dvc-plots.png", optimize=True)
