"""Define ``mela export``: make a trained embedding a program of its own."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mela.errors import MelaError
from mela.runtime.console import log

if TYPE_CHECKING:
    from mela.inference.export import Format

SUFFIXES = {"onnx": ".onnx", "torch": ".pt2"}


def export(
    onnx: Annotated[Path | None, typer.Option(readable=False, help="The .onnx file to write.")] = None,
    torch: Annotated[Path | None, typer.Option(readable=False, help="The .pt2 file to write.")] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            help="An embedding, alone or with what a method has learned.",
            show_default="that of `use` in the parameters",
        ),
    ] = None,
    params: Annotated[Path, typer.Option(readable=False, help="Parameters of the run.")] = Path("params.yaml"),
    results: Annotated[Path, typer.Option(readable=False, help="Metrics of the run.")] = Path("results"),
    lock: Annotated[Path, typer.Option(readable=False, help="DVC's record of the run.")] = Path("dvc.lock"),
) -> None:
    """Write the embedding as ONNX, or as a program of PyTorch that needs no MeLa, each with a model card beside it.

    Example: `mela export --onnx embedding.onnx --torch embedding.pt2`
    """
    asked = _asked(onnx, torch)

    from torch import device

    from mela.evaluation.temperature_files import read_temperatures, sha256
    from mela.inference import export
    from mela.inference.model_card import Source, model_card
    from mela.inference.provenance import provenance
    from mela.io.atomic import replacing, together
    from mela.io.store import write_text
    from mela.methods import find_method
    from mela.params import UseParams
    from mela.training.learner_files import load_learned

    if onnx is not None:
        export.require_packages()
    model = model or UseParams.model(params)
    learned = load_learned(model, device("cpu"))
    backbone, configuration = learned.backbone, learned.configuration
    source = Source(
        file=model.name,
        sha256=sha256(model),
        configuration=configuration,
        dimensions=backbone.dimensions,
        parameters=sum(weights.numel() for weights in backbone.parameters()),
        temperatures=read_temperatures(model),
        method=None if learned.method is None else find_method(learned.method).title,
    )
    origin = provenance(model, params=params, results=results, lock=lock)
    made = {path: export.export(kind, path.name, backbone, configuration) for kind, path in asked.items()}
    with together():
        for path, made_of in made.items():
            with replacing(path) as temporary:
                temporary.write_bytes(made_of.content)
            write_text(card_of(path), model_card(made_of, source, origin))
    for path, made_of in made.items():
        log.info(f"{path}: within {made_of.difference:.1e} of the embedding; {card_of(path)} says what it is")


def card_of(path: Path) -> Path:
    """Return the path of the model card of an export."""
    return path.with_name(f"{path.name}.md")


def _asked(onnx: Path | None, torch: Path | None) -> "dict[Format, Path]":
    """Return the formats that are asked for, and their files."""
    options: dict[Format, Path | None] = {"onnx": onnx, "torch": torch}
    asked = {kind: path for kind, path in options.items() if path is not None}
    for kind, path in asked.items():
        if path.suffix != SUFFIXES[kind]:
            raise MelaError(
                f"--{kind}: expected a name that ends in {SUFFIXES[kind]}, got {path.name!r}; give it that ending"
            )
    if not asked:
        raise MelaError("export: expected --onnx FILE, --torch FILE or both, got neither; say what to write")
    return asked
