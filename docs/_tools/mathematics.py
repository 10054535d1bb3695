"""Convert docstrings' formulas, ``:math:`...` `` and ``.. math::``, to MathML, which browsers show without scripts."""

import re
import textwrap
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor

BLOCK = re.compile(r"^\.\. math::(.*(?:\n(?:[ \t]+\S.*|[ \t]*(?=\n[ \t]+\S)))*)", flags=re.MULTILINE)


class Inline(InlineProcessor):
    """Convert formulas within a line."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str | Element, int, int]:  # noqa: N802
        """Put the formula aside, so that nothing else looks into it."""
        return self.md.htmlStash.store(convert(m[1])), m.start(), m.end()


class Blocks(Preprocessor):
    """Convert formulas on lines of their own."""

    def run(self, lines: list[str]) -> list[str]:
        """Put the formulas aside."""
        text = BLOCK.sub(self._formula, "\n".join(lines))
        return text.split("\n")

    def _formula(self, found: re.Match[str]) -> str:
        tex = " ".join(textwrap.dedent(found[1]).split())
        shown = f'<div class="formula">{convert(tex, display="block")}</div>'
        return f"\n{self.md.htmlStash.store(shown)}\n"


class Mathematics(Extension):
    """Convert both kinds of formulas."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Parse formulas before code in backquotes, and before indented code."""
        md.inlinePatterns.register(Inline(r":math:`([^`]+)`", md), "math", 200)
        md.preprocessors.register(Blocks(md), "math", 26)
