"""A real browser, where there is one."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
NEEDED = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None, reason="no Chromium here, so nobody looked at the page in a browser; apt-get install chromium"
    ),
]


@contextmanager
def opened() -> Iterator[Browser]:
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


def violations(page: Page) -> list[tuple[str, str]]:
    """What axe-core has against a page: its rules say how screen readers and keyboards get along with it."""
    found = Axe().run(page).response
    assert len(found["passes"]) > 15, "else it has not looked"
    return [(rule["id"], rule["nodes"][0]["html"]) for rule in found["violations"]]


def sideways(page: Page) -> int:
    """By how many pixels a page is wider than its window."""
    found: int = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    return found
