"""Make contact sheets: images of one class side by side."""

import base64
import io
import math

import numpy as np
import numpy.typing as npt
import pandas as pd
from PIL import Image

SIDE = 48
GAP = 2


def sheet(images: npt.NDArray[np.uint8]) -> str:
    """Place images (n, h, w, c), n at least 1, in rows of about equal length and width, as a ``data:`` address.

    Sides above 48 pixels are made smaller. Grey images are kept exactly, colours nearly (WebP).
    """
    n, height, width, channels = images.shape
    columns = math.ceil(math.sqrt(n))
    rows = math.ceil(n / columns)
    factor = min(1.0, SIDE / max(height, width))
    tile = (max(1, round(width * factor)), max(1, round(height * factor)))
    size = (columns * (tile[0] + GAP) - GAP, rows * (tile[1] + GAP) - GAP)
    whole = Image.new("LA" if channels == 1 else "RGBA", size)
    for position, pixels in enumerate(images):
        image = Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels)
        if image.size != tile:
            image = image.resize(tile, Image.Resampling.LANCZOS)
        place = (position % columns * (tile[0] + GAP), position // columns * (tile[1] + GAP))
        whole.paste(image.convert(whole.mode), place)
    buffer = io.BytesIO()
    kind = "png" if channels == 1 else "webp"
    # each format passes over the option of the other
    whole.save(buffer, kind, optimize=True, quality=80)
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"


def choose_images(weights: pd.DataFrame, count: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Choose images of one class: a quarter are those it is least sure of, the others are drawn at random.

    Parameters
    ----------
    weights : DataFrame
        Columns image_id and weight: how much each image belongs to the class.
    count : int
        At most so many.
    generator : Generator

    Returns
    -------
    int64 (n,)
        Ids, the least sure first.
    """
    ordered = weights.sort_values(["weight", "image_id"])["image_id"].to_numpy(dtype=np.int64)
    doubtful, others = np.split(ordered, [min(math.ceil(count / 4), len(ordered))])
    drawn = generator.choice(len(others), size=min(count - len(doubtful), len(others)), replace=False)
    return np.concatenate([doubtful, others[np.sort(drawn)]])
