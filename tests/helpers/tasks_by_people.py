"""What is known of each image of tasks by people."""

import pandas as pd

from mela.sources.source import ImageSource


def rows_of(source: ImageSource) -> pd.DataFrame:
    """The tasks with what is known of each image: whose it is, and what it shows."""
    assert source.tasks is not None
    assert source.classes is not None
    images = pd.DataFrame([path.split("/") for path in source.sources], columns=["of", "person", "shown", "image"])
    images["class"] = source.classes
    return source.tasks.join(images, on="image_id")
