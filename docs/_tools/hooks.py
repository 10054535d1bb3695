"""What the site needs beside its pages: pages and sections from the project's root, and links that hold there too."""

import os
import re
from pathlib import Path

from diagram import draw
from mathematics import Mathematics
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# files of the root that are pages of the site, too
PAGES = {"CHANGELOG.md": "project/changelog.md", "CONTRIBUTING.md": "project/contributing.md"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
SECTION = re.compile(r"^<!-- README: (.+) -->$", flags=re.MULTILINE)
FILE = re.compile(r"^<!-- file: (.+) -->$", flags=re.MULTILINE)
MARKDOWN = re.compile(r'href="([^":]+)\.md(#[^"]*)?"')
INTERVAL = re.compile(r"(?<=\d) ± (?=\d)")
MERMAID = re.compile(r"^```mermaid\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Show formulas."""
    config.markdown_extensions.append(Mathematics())
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that lie in the root."""
    for name, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put in sections of the README and files, let links lead to pages, draw diagrams, keep intervals whole."""
    there = Path(page.file.src_uri).parent
    here = Path() if page.file.src_uri in PAGES.values() else "docs" / there
    markdown = relinked(markdown, here, there)
    markdown = SECTION.sub(lambda found: relinked(section(found[1]), Path(), there), markdown)
    markdown = FILE.sub(lambda found: file_block(found[1]), markdown)
    markdown = INTERVAL.sub("\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}", markdown)
    return MERMAID.sub(lambda found: draw(found[1]), markdown)


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links in notebooks, which are no Markdown of the site, lead to pages."""
    return MARKDOWN.sub(r'href="\1.html\2"', html) if page.file.src_uri.endswith(".ipynb") else html


def section(title: str) -> str:
    """Return a section of the README with its heading."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"README.md: expected the section {title!r} that a page includes, found none")
    return found[0]


def file_block(name: str) -> str:
    """Return a file of the project as a block of code."""
    path = ROOT / name
    return f"```{path.suffix[1:]}\n{path.read_text(encoding='utf-8')}```"


def relinked(markdown: str, folder: Path, page_folder: Path) -> str:
    """Return the text of a file with links between pages of the site; other links become plain text.

    Parameters
    ----------
    markdown : str
    folder : Path
        The file's, below the root of the project.
    page_folder : Path
        That of the page that shows the text, below the site's.
    """
    slug = slugify(case="lower")
    pages = sorted(DOCS.rglob("*.md"))
    places = {
        slug(title, "-"): page.relative_to(DOCS).as_posix()
        for page in pages
        for title in SECTION.findall(page.read_text("utf-8"))
    }

    def relink(found: re.Match[str]) -> str:
        mark, text, target = found.groups()
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        path, _, anchor = target.partition("#")
        there = (ROOT / folder / path).resolve().relative_to(ROOT).as_posix()
        if there == "README.md":
            there = places.get(anchor, "index.md")
        there = PAGES.get(there, there.removeprefix("docs/"))
        known = (DOCS / there).is_file() or there in PAGES.values()
        link = Path(os.path.relpath(there, page_folder)).as_posix()
        return f"{mark}[{text}]({link}{'#' * bool(anchor)}{anchor})" if known else text

    return LINK.sub(relink, markdown)
