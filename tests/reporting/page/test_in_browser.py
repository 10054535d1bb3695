"""The page of a run in a real browser: by day, by night, on a phone, by keyboard, and without a network."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.helpers.browser import DESKTOP, NEEDED, PHONE, opened, sideways, violations

pytestmark = NEEDED


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened() as browser:
        yield browser


class Visit:
    """A page that is open, and what it did."""

    def __init__(self, context: BrowserContext, path: Path) -> None:
        self.problems: list[str] = []
        self.requests: list[str] = []
        context.set_offline(True)
        self.page: Page = context.new_page()
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def count(self, selector: str) -> int:
        return self.page.locator(f"{selector}:visible").count()


@pytest.fixture
def visit(browser: Browser, finished: Path, request: pytest.FixtureRequest) -> Iterator[Visit]:
    options: dict[str, Any] = {"viewport": DESKTOP, "reduced_motion": "reduce"} | getattr(request, "param", {})
    context = browser.new_context(**options)
    visit = Visit(context, finished / "results/report.html")
    yield visit
    context.close()
    assert visit.problems == []
    assert [url for url in visit.requests if not url.startswith(("file:", "data:"))] == []


everywhere = pytest.mark.parametrize(
    "visit",
    [{}, {"color_scheme": "dark"}, {"viewport": PHONE, "is_mobile": True, "has_touch": True}],
    ids=["desktop", "dark", "phone"],
    indirect=True,
)


@everywhere
def test_axe_finds_nothing(visit: Visit) -> None:
    assert violations(visit.page) == []
    visit.page.locator("#sheets .zoom").first.click()
    assert violations(visit.page) == []
    visit.page.keyboard.press("Escape")
    visit.page.locator(".enlarge").first.click()
    assert violations(visit.page) == []


@everywhere
def test_all_is_there_and_fits(visit: Visit) -> None:
    assert visit.count("section") == visit.count("section h2") == 9
    assert visit.count(".plot svg") == 6
    assert visit.count(".maps circle") == 60
    assert visit.count("#sheets li") > 50
    assert sideways(visit.page) <= 0, "the page itself scrolls sideways"
    broken = "[...document.images].filter(image => !image.complete || !image.naturalWidth).length"
    assert visit.page.evaluate(broken) == 0
    ids = visit.page.evaluate("[...document.querySelectorAll('[id]')].map(element => element.id)")
    assert len(ids) == len(set(ids))


CONTRAST = """() => {
  const light = (text) => {
    const part = text.match(/[\\d.]+/g).slice(0, 3).map((value) => value / 255);
    const linear = part.map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const paper = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (!colour.endsWith(", 0)")) return light(colour);
    }
  };
  const texts = "h1, h2, h3, p, a, td, th, dt, dd, figcaption, caption, label, button, summary, .plot text";
  return [...document.querySelectorAll(texts)]
    .filter((element) => element.checkVisibility() && element.textContent.trim())
    .map((element) => {
      const style = getComputedStyle(element);
      const [a, b] = [light(element.closest("svg") ? style.fill : style.color), paper(element)];
      return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), element.textContent.trim().slice(0, 30)];
    })
    .filter(([contrast]) => contrast < 4.5);
}"""


@pytest.mark.parametrize("visit", [{}, {"color_scheme": "dark"}], ids=["light", "dark"], indirect=True)
def test_all_text_can_be_read(visit: Visit) -> None:
    """Contrast of 4.5 or more (WCAG 2.2, AA)."""
    assert visit.page.evaluate(CONTRAST) == []


def test_the_theme_can_be_chosen(visit: Visit) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    found = []
    for name in ("as the system", "light", "dark", "as the system"):
        assert visit.page.locator("#theme").inner_text() == f"Theme: {name}"
        found.append(visit.page.evaluate(colour))
        visit.page.click("#theme")
    assert found == ["rgb(255, 255, 255)", "rgb(255, 255, 255)", "rgb(18, 22, 28)", "rgb(255, 255, 255)"]


UNNAMED = """() => {
  const things = "img, svg, button, select, input, table, dialog, [role=region]";
  return [...document.querySelectorAll(things)].filter((element) => !(
    element.alt || element.ariaLabel || element.getAttribute("aria-labelledby") || element.labels?.length
    || element.caption || element.innerText?.trim() || element.closest("dialog")
  )).map((element) => element.outerHTML);
}"""


def test_names_for_those_who_do_not_see(visit: Visit) -> None:
    assert visit.page.evaluate(UNNAMED) == []
    levels = visit.page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(element => +element.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert visit.page.locator("html").get_attribute("lang") == "en"


def test_by_keyboard(visit: Visit) -> None:
    """Keys take effect a while after they are pressed, which `expect` waits for."""
    page, press = visit.page, visit.page.keyboard.press
    press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    press("Enter")
    expect(page).to_have_url(re.compile("#result$"))
    first, large = page.locator(".zoom").first, page.locator("#large")
    first.focus()
    press("Enter")
    expect(large).to_be_visible()
    assert page.locator("#large-title").inner_text() == page.locator("#sheets h3").first.inner_text()
    press("Escape")
    expect(large).not_to_be_visible()
    expect(first).to_be_focused()


BODY = "document.getElementById('large-body')"


@everywhere
def test_charts_can_be_enlarged(visit: Visit) -> None:
    page, body, chart = visit.page, visit.page.locator("#large-body"), visit.page.locator("#figure-curves svg")
    there, before = chart.bounding_box(), visit.count("svg")
    assert there is not None
    height = page.evaluate("document.body.scrollHeight")
    page.locator("#figure-curves .enlarge").click()
    expect(page.locator("#large-title")).to_have_text("Training")
    assert page.evaluate("document.body.scrollHeight") == height, "the page behind stays as it is"
    width = body.locator("svg").evaluate("svg => svg.getBoundingClientRect().width")
    assert width > 0.95 * there["width"], "a phone has no more room"
    assert (
        page.evaluate("document.getElementById('large').scrollWidth - document.getElementById('large').clientWidth")
        == 0
    )
    page.locator("#zoom input").fill("400")
    assert body.locator("svg").evaluate("svg => svg.getBoundingClientRect().width") == pytest.approx(4 * width, rel=0.1)
    middle = page.evaluate(f"({BODY}.scrollLeft + {BODY}.clientWidth / 2) / {BODY}.scrollWidth")
    assert middle == pytest.approx(0.5, abs=0.02)
    page.evaluate(f"{BODY}.addEventListener('scroll', () => {{ {BODY}.dataset.scrolled = 'yes'; }})")
    body.focus()
    page.keyboard.press("ArrowRight")
    expect(body).to_have_attribute("data-scrolled", "yes")
    page.keyboard.press("Escape")
    expect(page.locator("#figure-curves .enlarge")).to_be_focused()
    assert chart.bounding_box()["width"] == there["width"]
    assert visit.count("svg") == before


def test_a_map_that_is_enlarged_can_be_asked(visit: Visit) -> None:
    visit.page.locator(".maps .enlarge").last.click()
    circle = visit.page.locator("#large-body circle").first
    circle.click(force=True)
    chosen = visit.page.locator("#large-body circle.chosen")
    expect(chosen.first).to_be_visible()
    assert chosen.first.get_attribute("data-label") == circle.get_attribute("data-label")
    label = circle.get_attribute("data-label")
    visit.page.locator("#large button").click()
    assert visit.page.locator("#map-class").input_value() == label


def test_classes_are_found_and_ordered(visit: Visit) -> None:
    page = visit.page
    total = visit.count("#sheets li")
    label = page.locator("#sheets li").nth(3).get_attribute("data-label")
    page.fill("[name=text]", str(label))
    assert visit.count("#sheets li") == 1
    assert page.locator("output").inner_text() == f"1 of {total} shown"
    name = page.locator("#sheets li:visible").get_attribute("data-name")
    page.fill("[name=text]", str(name).lower())
    assert 1 <= visit.count("#sheets li") < total
    page.fill("[name=text]", "")
    page.check("[name=mixed]")
    mixed = page.locator("#sheets li:visible").evaluate_all("cards => cards.map(card => +card.dataset.classes)")
    assert 0 < len(mixed) < total
    assert min(mixed) > 1
    page.uncheck("[name=mixed]")
    orders = [("large", "size", -1), ("small", "size", 1), ("purity", "purity", 1), ("label", "label", 1)]
    for order, key, sign in orders:
        page.select_option("[name=order]", order)
        values = page.locator("#sheets li").evaluate_all(f"cards => cards.map(card => +card.dataset.{key})")
        assert values == sorted(values, key=lambda value, sign=sign: sign * value)
        assert len(values) == total


def test_a_class_is_shown_on_the_map(visit: Visit) -> None:
    button = visit.page.locator(".show").first
    label = button.get_attribute("data-label")
    button.click()
    assert visit.count(f'.maps circle.chosen[data-label="{label}"]') == visit.count(".maps circle.chosen") == 12
    assert visit.page.evaluate("document.activeElement.id") == "map-class"
    visit.page.select_option("#map-class", "")
    assert visit.count(".maps circle.chosen") == 0


@pytest.mark.parametrize("visit", [{"java_script_enabled": False}], indirect=True)
def test_without_scripts_all_is_shown(visit: Visit) -> None:
    assert visit.count("#sheets li") > 50
    assert visit.count("#filter") == visit.count("#theme") == visit.count(".show") == visit.count(".enlarge") == 0
