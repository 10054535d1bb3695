"""Read which superclass each class of CIFAR-100 belongs to, as published (Krizhevsky, 2009)."""

from importlib import resources

from mela.io.text_tables import parse_csv


def superclass_of_classes() -> dict[str, str]:
    """Return the superclass of each of the 100 classes of CIFAR-100, ``{class: superclass}``, classes sorted."""
    name = "cifar100_superclasses.csv"
    text = resources.files("mela.sources").joinpath("splits", name).read_text(encoding="utf-8")
    columns = parse_csv(text, where=name, required=("class", "superclass")).columns
    return dict(sorted(zip(columns["class"], columns["superclass"], strict=True)))
