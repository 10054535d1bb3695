"""The command `mela export`: files that compute what the embedding does, and cards that say what they are."""

import builtins
import hashlib
import re
import shutil
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from ruamel.yaml import YAML

from mela.cli import main as cli
from mela.evaluation.temperature_files import write_temperatures
from mela.inference import export as exporting
from mela.inference.export import Export
from mela.inference.model_card import Source, model_card
from mela.inference.provenance import EMBEDDINGS, Provenance, provenance
from mela.io import store
from mela.io.name_tables import LISTING
from mela.io.text_tables import read_text_csv
from mela.labeling.given_names import add_given_name
from mela.models.backbones import Backbone, build_backbone
from mela.models.files import read_model
from mela.models.untrained import save_nothing
from tests.helpers.classifier import write_model
from tests.helpers.extras import ONNX
from tests.helpers.processes import python
from tests.helpers.project import change, run_stages
from tests.helpers.starts import modules_after

FORMATS = [pytest.param("onnx", marks=ONNX), "torch"]
SHAPES = {
    "conv4": {"name": "conv4", "channels": 1, "size": 28, "width": 8, "drop_rate": 0.0},
    "resnet12": {"name": "resnet12", "channels": 3, "size": 32, "width": 4, "drop_rate": 0.3},
}
WITHOUT_MELA = """
import sys, warnings
sys.modules["mela"] = None
warnings.simplefilter("error")
# PyTorch reads weights from bytes that cannot be written to, and says so itself
warnings.filterwarnings("ignore", "The given buffer is not writable", UserWarning)
"""
COMPARE = """
import numpy as np, torch
for name in sys.argv[1:]:
    module = torch.export.load(f"{name}.pt2").module()
    given, expected = np.load(f"{name}-images.npy"), np.load(f"{name}-features.npy")
    for n in (1, 2, 5, len(given)):
        with torch.inference_mode():
            found = module(torch.from_numpy(given[:n])).numpy()
        np.testing.assert_allclose(found, expected[:n], rtol=1e-4, atol=1e-5)
assert not [name for name in sys.modules if name.startswith("mela.")]
"""


@cache
def embedding(name: str) -> tuple[Backbone, dict[str, Any]]:
    """An untrained one with statistics of some images, and dropout that has to be off."""
    channels, size = SHAPES[name]["channels"], SHAPES[name]["size"]
    configuration = SHAPES[name] | {"drop_block": 2, "mean": [0.4] * channels, "std": [0.3] * channels}
    backbone = build_backbone(**configuration, seed=0)
    with torch.no_grad():
        backbone.train()(torch.rand(64, channels, size, size, generator=torch.Generator().manual_seed(0)))
    return backbone.eval(), configuration


@cache
def exported(name: str, kind: exporting.Format) -> Export:
    return exporting.export(kind, name, *embedding(name))


def alone(code: str, *arguments: str, folder: Path) -> str:
    """What code prints in a process that has no MeLa, and in which warnings are errors."""
    ended = python("-c", WITHOUT_MELA + code, *arguments, folder=folder)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def random_images(n: int, configuration: dict[str, Any]) -> npt.NDArray[np.float32]:
    shape = (n, configuration["channels"], configuration["size"], configuration["size"])
    return np.random.default_rng(n).random(shape, dtype=np.float32)


def features_of(backbone: Backbone, images: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    with torch.inference_mode():
        return backbone(torch.from_numpy(images)).numpy()


@pytest.mark.slow
@pytest.mark.versions
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", SHAPES)
def test_an_export_computes_what_the_embedding_does(name: str, kind: exporting.Format) -> None:
    backbone, configuration = embedding(name)
    made = exported(name, kind)
    compute = (exporting.run_onnx if kind == "onnx" else exporting.run_torch)(made.content)
    for n in (1, 2, 3, 100):
        images = random_images(n, configuration)
        expected = features_of(backbone, images)
        np.testing.assert_allclose(compute(images), expected, rtol=1e-4, atol=1e-5)
    assert expected.std(axis=0).max() > 0.01
    assert made.difference <= exporting.TOLERANCE
    assert not re.search(rb"[/\\][^\0]{0,200}\.py\b", made.content), "paths of the machine that made it"
    if kind == "onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(made.content, providers=["CPUExecutionProvider"])
        (taken,), (given,) = session.get_inputs(), session.get_outputs()
        assert (taken.name, taken.type, taken.shape) == ("images", "tensor(float)", ["batch", *images.shape[1:]])
        assert (given.name, given.type, given.shape) == ("features", "tensor(float)", ["batch", *expected.shape[1:]])


@pytest.mark.slow
def test_the_torch_program_needs_no_mela(tmp_path: Path) -> None:
    for name in SHAPES:
        backbone, configuration = embedding(name)
        images = random_images(9, configuration)
        (tmp_path / f"{name}.pt2").write_bytes(exported(name, "torch").content)
        np.save(tmp_path / f"{name}-images.npy", images)
        np.save(tmp_path / f"{name}-features.npy", features_of(backbone, images))
    alone(COMPARE, *SHAPES, folder=tmp_path)


@pytest.mark.parametrize(
    ("compute", "difference"),
    [
        (lambda features: features * (1 + 5e-5), "5e-05"),
        (lambda features: features * np.nan, "nan"),
        (lambda features: features[:1], "inf"),
    ],
)
@pytest.mark.parametrize("kind", FORMATS)
def test_what_does_not_agree_is_refused(
    run: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    compute: Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]],
    difference: str,
) -> None:
    backbone, _ = read_model(Path("models/merged.safetensors"), torch.device("cpu"))
    wrong = lambda content: lambda images: compute(features_of(backbone, images))  # noqa: E731
    monkeypatch.setattr(exporting, f"run_{kind}", wrong)
    monkeypatch.setattr(exporting, f"to_{kind}", lambda *arguments: b"")
    suffix = {"onnx": "onnx", "torch": "pt2"}[kind]
    assert run(f"--{kind}", f"out/psi.{suffix}", status=1) == (
        f"error: --{kind}: expected features within 1e-05 of those of the embedding (share of the largest), got a "
        f"difference of {difference}; nothing was written, try other versions of torch and of the packages for ONNX\n"
    )
    assert not Path("out").exists()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The command, beside an untrained model; what it says on the channel that its status asks for."""
    if not Path("models/merged.safetensors").is_file() or Path.cwd().name != "copy":
        monkeypatch.chdir(tmp_path)
        write_model(Path("models/merged.safetensors"))

    def call(*arguments: str, status: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["mela", "export", *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capfd.readouterr()
        assert (ended.value.code or 0) == status, said.err
        assert (said.err if status == 0 else said.out) == ""
        return said.out if status == 0 else said.err

    return call


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exports without content, where it is not what is looked at, since making it takes long."""
    monkeypatch.setattr(
        exporting, "export", lambda kind, file, *_: Export(file=file, kind=kind, content=b"", difference=0.0)
    )


@pytest.fixture
def card_of(run: Callable[..., str], empty: None) -> Callable[..., str]:
    """The card of an exported model."""

    def call(*arguments: str) -> str:
        run("--torch", "psi.pt2", *arguments)
        return Path("psi.pt2.md").read_text(encoding="utf-8")

    return call


def code_of(card: str) -> str:
    (code,) = re.findall(r"```python\n(.*?)```", card, flags=re.DOTALL)
    assert len(code.splitlines()) == 5
    return code


@pytest.mark.slow
@pytest.mark.versions
@ONNX
def test_both_formats_with_a_card_each(copied: Path, run: Callable[..., str]) -> None:
    said = run("--onnx", "out/psi.onnx", "--torch", "out/psi.pt2")
    assert re.fullmatch(
        r"out/psi.onnx: within \S+ of the embedding; out/psi.onnx.md says what it is\n"
        r"out/psi.pt2: within \S+ of the embedding; out/psi.pt2.md says what it is\n",
        said,
    )
    assert sorted(path.name for path in Path("out").iterdir()) == ["psi.onnx", "psi.onnx.md", "psi.pt2", "psi.pt2.md"]
    measured = store.read_json(Path("results/evaluate/metrics.json"))["accuracy"]["merged"]
    label = store.read_json(Path("results/label/merged.json"))
    for name, packages in {"psi.onnx": ("onnx", "onnxscript", "onnxruntime"), "psi.pt2": ()}.items():
        content, card = Path("out", name).read_bytes(), Path("out", f"{name}.md").read_text(encoding="utf-8")
        assert card.startswith(f"# {name}\n")
        assert f"| SHA-256 | `{hashlib.sha256(content).hexdigest()}` |" in card
        model = hashlib.sha256(Path("models/merged.safetensors").read_bytes()).hexdigest()
        assert f"| made from | `merged.safetensors`, SHA-256 `{model}` |" in card
        assert "| architecture | conv4, width 8, 1,864 parameters |" in card
        assert "`images`, float32 (n, 1, 16, 16), any n: grey levels from 0 to 1" in card
        assert "- data set: glyphs, images of 16 x 16 pixels\n- tasks: 80 of 5 classes" in card
        assert "- labels: MeLa, merged\n" in card
        assert f"{label['clusters']} classes; of the pairs in one class {label['pair_precision']:.1f}%" in card
        assert "- against the truth: 80 classes, clustering accuracy " in card
        for shots in (1, 5):
            values = measured[f"{shots}_shot"]
            assert f"| {shots}-shot | {values['mean']:.2f} | ± {values['ci95']:.2f} | 12 |\n" in card
        assert "The code of MeLa is under the MIT licence." in card
        assert "is for you to state" in card
        assert f"mela {version('mela-learn')}, torch" in card
        for package in ("torch", *packages):
            assert f"{package} {version(package)}" in card
        assert str(copied) not in card
        assert alone(code_of(card), folder=Path("out")) == "(8, 8)\n"


def test_the_initial_embedding_has_its_own_figures(copied: Path, card_of: Callable[..., str]) -> None:
    card = card_of("--model", "models/initial.safetensors")
    values = store.read_json(Path("results/evaluate/metrics.json"))["accuracy"]["initial"]["1_shot"]
    assert f"| 1-shot | {values['mean']:.2f} | ± {values['ci95']:.2f} | 12 |\n" in card
    assert "- labels: none beside those of each task; learned by ridge regression in each (Eq. 4-5)\n" in card
    assert "quality" not in card


def test_the_card_says_how_probabilities_are_calibrated(copied: Path, card_of: Callable[..., str]) -> None:
    card = card_of()
    found = store.read_json(Path("results/evaluate/metrics.json"))["calibration"]["merged"]
    for setting, values in found.items():
        row = f"{values['temperature']:.3g} | {values['ece_before']:.1f} | {values['ece']:.1f}"
        assert f"| {setting.replace('_', '-')} | {row} |\n" in card
        row = f"{values['threshold']:.3g} | {values['refused']:.1f} | {values['found']:.1f}"
        assert f"| {setting.replace('_', '-')} | {row} |\n" in card
    assert "not calibrated" not in card


def test_what_is_not_known_is_not_claimed(card_of: Callable[..., str]) -> None:
    card = card_of()
    unknown = "Not known: this is not a model of the last run in the folder where it was exported."
    assert f"## Training\n\n{unknown}\n" in card
    assert "## Accuracy\n\nNot measured.\n" in card
    assert "\nProbabilities are not calibrated: no `temperatures.json` knows this model; copy it beside" in card


COLOURED = {"channels": 3, "size": 32, "width": 1, "mean": [0.4] * 3, "std": [0.3] * 3}


def card_about(configuration: dict[str, Any], origin: Provenance | None = None) -> str:
    source = Source(file="x", sha256="0", configuration=configuration, dimensions=8, parameters=1234)
    return model_card(Export(file="psi.pt2", kind="torch", content=b"", difference=0.0), source, origin)


def test_a_network_of_timm_has_a_side_and_no_width() -> None:
    card = card_about(COLOURED | {"name": "timm:test_resnet", "side": 160})
    assert (
        "| architecture | timm:test_resnet for images that the model resizes to 160 x 160 pixels itself "
        "(`model.input_size`), 1,234 parameters |" in card
    )
    assert "width" not in card
    assert "| architecture | resnet12, width 1, 1,234 parameters |" in card_about(COLOURED | {"name": "resnet12"})


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (111.1, "3 classes; too few pairs to judge them; 80.0% of"),
        (24.0, "pairs in one class 100.0% ± 24.0 (standard error) belong together; 80.0% of"),
        (None, "pairs in one class 100.0% belong together; 80.0% of"),
    ],
)
def test_an_error_as_wide_as_the_scale_is_no_estimate(error: float | None, said: str) -> None:
    origin = Provenance(
        embedding="merged",
        data={"name": "tasks", "image_size": 32},
        tasks={},
        head={},
        evaluation={},
        label={"clusters": 3, "tasks_clustered": 80.0, "pair_precision": 100.0, "pair_precision_error": error},
        scores={},
    )
    assert said in card_about(COLOURED | {"name": "conv4"}, origin)


def test_temperatures_without_a_run_are_told(card_of: Callable[..., str]) -> None:
    model = Path("models/merged.safetensors")
    fitted = {"1_shot": {"temperature": 0.25}, "5_shot": {"temperature": 0.125}}
    write_temperatures(Path("models/temperatures.json"), {model: fitted}, C=2)
    card = card_of()
    assert "the logits of logistic regression (C = 2) give calibrated probabilities;" in card
    assert "| 1-shot | 0.25 |\n| 5-shot | 0.125 |\n" in card
    assert "not calibrated" not in card
    write_temperatures(Path("models/temperatures.json"), {model: {}}, C=2)
    assert "not calibrated: there were no validation tasks" in card_of()


def write_lock(blocks: dict[str, Any], models: list[dict[str, str]]) -> None:
    """DVC's record of a run with these blocks of parameters, which evaluated these models."""
    used = {"images": "data", "manifest": "tasks", "evaluate": "evaluate", "map": "use"}
    stages: dict[str, Any] = {stage: {"params": {"params.yaml": {name: blocks[name]}}} for stage, name in used.items()}
    stages["evaluate"]["deps"] = models
    YAML(typ="safe").dump({"stages": stages}, Path("dvc.lock"))


ASKED = {"params": Path("params.yaml"), "results": Path("results"), "lock": Path("dvc.lock")}


def lock_entry(path: Path) -> dict[str, str]:
    """Return how DVC's record names a file."""
    return {"path": path.as_posix(), "md5": hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}


def test_dvc_knows_a_model_by_its_content(copied: Path) -> None:
    """Whatever its name is, and whatever the parameters have become since."""
    merged = Path("models/merged.safetensors")
    blocks = YAML(typ="safe").load(Path("params.yaml"))
    write_lock(blocks, [lock_entry(Path("models", name)) for name in EMBEDDINGS])
    change(Path("params.yaml"), {"data.name": "omniglot"})
    moved = merged.rename("psi.safetensors")
    found = provenance(moved, **ASKED)
    assert found is not None
    assert (found.embedding, found.data["name"]) == ("merged", "glyphs")
    assert list(found.evaluation["accuracy"]) == ["initial", "merged", "pruned", "oracle"]
    write_model(merged)
    assert provenance(merged, **ASKED) is None
    (copied / "dvc.lock").unlink()
    assert provenance(merged, **ASKED) is None
    Path("models/temperatures.json").unlink()
    renamed = provenance(merged, **ASKED)
    assert renamed is not None
    assert renamed.data["name"] == "omniglot"
    assert provenance(moved, **ASKED) is None


@pytest.mark.parametrize("known_by", ["dvc.lock", "temperatures", "name"])
@pytest.mark.parametrize("kind", ["initial", "merged", "merged_soft", "pruned", "kmeans", "oracle"])
def test_every_embedding_has_what_is_known_of_its_own_labels(copied: Path, kind: str, known_by: str) -> None:
    """Soft labels are shares of the merged ones; nobody inferred the true ones. The run is of a former version."""
    params = Path("params.yaml")
    params.write_text(params.read_text(encoding="utf-8").replace("  image_size:", "  size:"), encoding="utf-8")
    model, evaluation = Path("models", f"{kind}.safetensors"), Path("results/evaluate/metrics.json")
    metrics = store.read_json(evaluation)
    if known_by == "temperatures":
        # those that are on by default have none of some kinds
        fitted = metrics["calibration"]["merged"]
        if kind not in metrics["calibration"]:
            write_model(model, channels=1)
        store.write_json(evaluation, metrics | {"calibration": {kind: fitted}})
        write_temperatures(Path("models/temperatures.json"), {model: fitted}, C=1.0)
    else:
        Path("models/temperatures.json").unlink()
    if known_by == "dvc.lock":
        write_lock(YAML(typ="safe").load(Path("params.yaml")), [lock_entry(model)])
    found = provenance(model, **ASKED)
    assert found is not None
    assert found.embedding == kind
    assert "size" not in found.data
    assert found.data["image_size"] == 16
    inferred, scored = kind.removesuffix("_soft"), store.read_json(Path("results/score_labels/metrics.json"))
    known = inferred in ("merged", "pruned")
    assert found.label == (store.read_json(Path(f"results/label/{inferred}.json")) if known else {})
    assert found.scores == scored.get(inferred, {})
    assert bool(found.scores) == (known or kind == "kmeans")
    assert found.listing is None


CARDS = {
    "merged_soft": ("MeLa, merged, soft", True),
    "pruned": ("MeLa, pruned", True),
    "kmeans": ("K-means", False),
    "oracle": ("true labels", False),
}


@pytest.mark.parametrize("kind", CARDS)
def test_a_card_is_about_the_labels_that_were_learned(copied: Path, card_of: Callable[..., str], kind: str) -> None:
    model, known = Path("models", f"{kind}.safetensors"), Path("results/evaluate/metrics.json")
    name, inferred = CARDS[kind]
    measured = store.read_json(known)
    if kind not in measured["accuracy"]:
        write_model(model, channels=1)
        measured["accuracy"][kind] = measured["accuracy"]["pruned"]
        store.write_json(known, measured)
    Path("models/temperatures.json").unlink()
    card = card_of("--model", str(model))
    assert f"- labels: {name}\n" in card
    assert ("- quality of the labels, judged without any truth: " in card) == inferred
    assert ("- against the truth: 80 classes, clustering accuracy " in card) == inferred
    if inferred:
        label = store.read_json(Path(f"results/label/{kind.removesuffix('_soft')}.json"))
        assert f"judged without any truth: {label['clusters']} classes; " in card
    values = measured["accuracy"][kind]["1_shot"]
    assert f"| 1-shot | {values['mean']:.2f} | ± {values['ci95']:.2f} | 12 |\n" in card


def test_names_stand_only_on_the_card_of_the_labels_in_use(people_copied: Path, card_of: Callable[..., str]) -> None:
    """The list of names is about these."""
    assert "- what people called all classes, by number: " in card_of()
    label = read_text_csv(Path("results/labels.csv"), LISTING).query("cluster == 0").iloc[0]
    add_given_name(Path("class_names.csv"), (label["task"], label["label"]), "fly *agaric*")
    run_stages("assign")
    assert r" 0 (fly \*agaric\*): " in card_of()
    Path("models/temperatures.json").unlink()
    soft = write_model(Path("models/merged_soft.safetensors"), channels=1)
    assert "- what people called all classes, by number: " in card_of("--model", str(soft))
    change(Path("params.yaml"), {"use": "pruned"})
    assert "what people called" not in card_of("--model", "models/merged.safetensors")
    assert "what people called" not in card_of("--model", "models/initial.safetensors")


def test_the_model_is_that_of_the_labels_in_use(copied: Path, card_of: Callable[..., str]) -> None:
    change(Path("params.yaml"), {"use": "pruned"})
    card = card_of()
    pruned = hashlib.sha256(Path("models/pruned.safetensors").read_bytes()).hexdigest()
    assert f"| made from | `pruned.safetensors`, SHA-256 `{pruned}` |" in card
    shutil.move("params.yaml", "other.yaml")
    assert "| made from | `pruned.safetensors`" in card_of("--params", "other.yaml")
    assert "| made from | `merged.safetensors`" in card_of()


def test_a_run_without_dvc_is_known_beside_the_record_of_another(copied: Path, card_of: Callable[..., str]) -> None:
    """As after `mela run` in a clone, whose dvc.lock is of the project's own run."""
    entries = [{"path": f"models/{name}.safetensors", "md5": "0" * 32} for name in ("initial", "merged")]
    write_lock({name: {"C": 9.0} for name in ("data", "tasks", "evaluate")} | {"use": "merged"}, entries)
    shutil.copy("models/merged.safetensors", "psi.safetensors")
    change(Path("params.yaml"), {"evaluate.C": 2.5})
    card = card_of("--model", "psi.safetensors")
    values = store.read_json(Path("results/evaluate/metrics.json"))["accuracy"]["merged"]["1_shot"]
    assert "- data set: glyphs, images of 16 x 16 pixels\n" in card
    assert "Of logistic regression (C = 1)" in card
    assert f"| 1-shot | {values['mean']:.2f} | ± {values['ci95']:.2f} | 12 |\n" in card
    assert "Divided by the temperature" in card
    # metrics of another run do not count
    evaluation = store.read_json(Path("results/evaluate/metrics.json"))
    evaluation["calibration"]["merged"]["1_shot"]["temperature"] = 0.5
    store.write_json(Path("results/evaluate/metrics.json"), evaluation)
    card = card_of("--model", "models/merged.safetensors")
    assert "Not measured." in card
    assert "(C = 1) give calibrated probabilities" in card


REFUSED: dict[str, tuple[Callable[[], Any], list[str], str]] = {
    "no format": (
        lambda: None,
        [],
        "export: expected --onnx FILE, --torch FILE or both, got neither; say what to write",
    ),
    "another name for ONNX": (
        lambda: None,
        ["--onnx", "psi.bin"],
        "--onnx: expected a name that ends in .onnx, got 'psi.bin'; give it that ending",
    ),
    "another name for torch": (
        lambda: None,
        ["--torch", "psi.pt"],
        "--torch: expected a name that ends in .pt2, got 'psi.pt'; give it that ending",
    ),
    "no model": (
        lambda: None,
        ["--torch", "psi.pt2", "--model", "nowhere.safetensors"],
        "nowhere.safetensors: no such file; run `dvc repro`, or the stage that makes it, first",
    ),
    "no parameters": (
        lambda: Path("params.yaml").write_text("- 1"),
        ["--torch", "psi.pt2"],
        "params.yaml: expected blocks such as `labeler:`, got list",
    ),
    "parameters of a former version": (
        lambda: Path("params.yaml").write_text("data: {}\nlabeler: {}\n"),
        ["--torch", "psi.pt2"],
        "params.yaml: use: expected this block, found only data, labeler",
    ),
    "labels that cannot be used": (
        lambda: Path("params.yaml").write_text("use: oracle\n"),
        ["--torch", "psi.pt2"],
        "params.yaml: use: expected merged or pruned, got 'oracle'",
    ),
    "labels that nothing was trained on": (
        lambda: (Path("params.yaml").write_text("use: pruned\n"), save_nothing(Path("models/pruned.safetensors"))),
        ["--torch", "psi.pt2"],
        "models/pruned.safetensors: expected an embedding, got none, since nothing was trained on these labels; set "
        "compare.pruned to true in the parameters and run the pipeline again, or name another model",
    ),
    "no record of DVC": (
        lambda: Path("dvc.lock").write_text("stages: 3"),
        ["--torch", "psi.pt2"],
        "dvc.lock: expected DVC's record of a whole run, got 'int' object is not subscriptable; run `dvc repro`",
    ),
    "a folder in the way": (
        lambda: Path("psi.pt2").mkdir(),
        ["--torch", "psi.pt2"],
        "psi.pt2: Is a directory; move what is there away",
    ),
    "a folder in the way of a card": (
        lambda: Path("psi.pt2.md").mkdir(),
        ["--torch", "psi.pt2"],
        "psi.pt2.md: Is a directory; move what is there away",
    ),
}


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize("case", REFUSED)
def test_it_refuses_in_one_line_and_writes_nothing(run: Callable[..., str], case: str) -> None:
    spoil, arguments, message = REFUSED[case]
    spoil()
    before = {path: path.is_file() and path.read_bytes() for path in Path().rglob("*")}
    assert run(*arguments, status=1) == f"error: {message}\n"
    assert {path: path.is_file() and path.read_bytes() for path in Path().rglob("*")} == before


@ONNX
@pytest.mark.parametrize("package", exporting.PACKAGES)
def test_a_missing_package_is_told(run: Callable[..., str], monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    message = (
        f"error: --onnx: expected the package {package}, which is not installed; run `pip install -e '.[onnx]'` in a "
        "clone of the project, or `pip install onnx onnxscript onnxruntime` elsewhere\n"
    )
    assert run("--onnx", "psi.onnx", status=1) == message


@ONNX
@pytest.mark.parametrize(
    "error",
    [ImportError("libstdc++.so.6: version not found"), RuntimeError("a line\nand another"), AttributeError("x")],
)
def test_a_package_that_cannot_be_imported_is_told(
    run: Callable[..., str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(name: str) -> object:
        if name == "onnxscript":
            raise error
        return sys.modules.get(name)

    monkeypatch.setattr(exporting, "import_module", broken)
    assert run("--onnx", "psi.onnx", status=1) == (
        "error: --onnx: the package onnxscript is installed, but it cannot be imported: "
        f"{' '.join(str(error).split())}; install it again: run `pip install -e '.[onnx]'` in a clone of the project, "
        "or `pip install onnx onnxscript onnxruntime` elsewhere\n"
    )


@pytest.mark.slow
def test_torch_needs_no_package_of_onnx(run: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def refuse(name: str, *arguments: Any, **keywords: Any) -> Any:
        assert name.split(".")[0] not in exporting.PACKAGES, name
        return plain(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", refuse)
    run("--torch", "psi.pt2")
    assert Path("psi.pt2").is_file()


def test_the_command_line_starts_without_what_only_exports_need() -> None:
    imported = modules_after("import mela.cli.main")
    assert "mela.cli.export" in imported
    assert not {name for name in ("torch", *exporting.PACKAGES) if name in imported}
