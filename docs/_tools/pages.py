"""Write each page whose figures come from results, from its template in docs/_templates: `make tables`."""

import re
from pathlib import Path
from traceback import extract_tb

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError

from docs._tools.template_functions import Figures, bare, pair
from mela.errors import MelaError
from mela.io.atomic import replacing, together
from mela.runtime.console import log
from stages.common.run import run
from studies.labels.tables import NAMES

TEMPLATES = Path("docs/_templates")
MADE = "<!-- Made by `make tables` from {}: change that file, and not this one. -->\n\n"
FIGURE = re.compile(r"(?<![\d.])\d+\.\d(?!\d|\.\d)")
# pages of which every such figure is computed; one that is published or was measured once stands as {{ 93.1 }}
COMPUTED = ("README.md", "docs/results/findings.md", "docs/results/methods.md")


def main() -> None:
    """Write all pages that have a template."""
    figures = Figures()
    if {*figures.matrix.data} != {*NAMES}:
        log.info(f"pages: those with a template are left as they are, since they speak of {', '.join(NAMES)}")
        return
    texts = {page: rendered(page, figures) for page in pages()}
    with together():
        for page, text in texts.items():
            with replacing(Path(page)) as temporary:
                temporary.write_text(text, encoding="utf-8")
    log.info(f"pages: {', '.join(texts)}")


def pages() -> list[str]:
    """Return the pages that have a template."""
    found = [path.relative_to(TEMPLATES).with_suffix("").as_posix() for path in TEMPLATES.rglob("*.jinja")]
    return sorted(page if page == "README.md" else f"docs/{page}" for page in found)


def rendered(page: str, figures: Figures, folder: Path = TEMPLATES) -> str:
    """Return the text of a page, from its template and the results.

    Raises
    ------
    MelaError
        The results contradict the words of the template, or it has a figure that is typed by hand.
    """
    path = folder / f"{page.removeprefix('docs/')}.jinja"
    environment = Environment(  # noqa: S701 - it is Markdown of our own
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        extensions=["jinja2.ext.do"],
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(figures.functions())
    environment.filters.update(bare=bare, pair=pair)
    try:
        for line, kind, text in environment.lex(path.read_text(encoding="utf-8"), filename=str(path)):
            if kind == "data" and page in COMPUTED and (typed := FIGURE.search(text)):
                line += text.count("\n", 0, typed.start())
                raise MelaError(f"line {line}: expected no figure typed by hand, got {typed[0]}; compute it")
        text = environment.get_template(path.relative_to(folder).as_posix()).render()
    except (ArithmeticError, LookupError, MelaError, TemplateError, TypeError, ValueError) as error:
        lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == str(path)]
        problem = error if isinstance(error, MelaError) else repr(error)
        raise MelaError(f"{path}: {f'line {lines[-1]}: ' if lines else ''}{problem}") from error
    return MADE.format(path) + text.rstrip("\n") + "\n"


if __name__ == "__main__":
    run(main)
