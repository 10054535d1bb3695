"""Name the files of an embedding that was pre-trained on one kind of labels, or was not."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from mela.io import schemas, store
from mela.io.atomic import replacing, together
from mela.models.untrained import save_nothing
from stages.common import paths
from stages.common.run import is_first

if TYPE_CHECKING:
    # which need torch; the report only asks where the files are
    from mela.models.backbones import Backbone


@dataclass(frozen=True, kw_only=True)
class Trained:
    """Name where an embedding, its losses and its curve are."""

    model: Path
    metrics: Path
    curve: Path

    def write(
        self, backbone: "Backbone", configuration: dict[str, Any], metrics: Mapping[str, Any], curve: pd.DataFrame
    ) -> None:
        """Write all three."""
        from mela.models.files import save_model

        with together():
            save_model(self.model, backbone, configuration)
            store.write_csv(self.curve, curve)
            store.write_json(self.metrics, metrics)

    def write_nothing(self) -> None:
        """Write all three without content, in the first of several processes."""
        self.pass_on({})

    def pass_on(self, files: Mapping[Path, Path]) -> None:
        """Write figures without content and copies of files, or a model without content if there are none."""
        if not is_first():
            return
        with together():
            for source, copy in files.items():
                with replacing(copy) as path:
                    shutil.copyfile(source, path)
            if not files:
                save_nothing(self.model)
            store.write_csv(self.curve, pd.DataFrame(columns=schemas.CURVE.names))
            store.write_json(self.metrics, {})


def trained(labels: str) -> Trained:
    """Return the files of the embedding that is pre-trained on labels of that name."""
    return Trained(
        model=paths.MODELS / f"{labels}.safetensors",
        metrics=paths.PRETRAIN / f"{labels}.json",
        curve=paths.PRETRAIN / f"{labels}.csv",
    )
