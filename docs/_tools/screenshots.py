"""Draw report.png: the report of the last run as a browser shows it (needs Chromium)."""

import io
import shutil
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

PAGE = Path("results/report.html")
OUT = Path(__file__).parents[1] / "images/report.png"
GAP, WIDTH, HEIGHT, PHONE = 20, 1100, 760, 390
VIEWS = [
    (0, 0, WIDTH, "light", "result"),
    (WIDTH + GAP, 0, WIDTH, "light", "classes"),
    (0, HEIGHT + GAP, WIDTH, "light", "map"),
    (WIDTH + GAP, HEIGHT + GAP, PHONE, "dark", "classes"),
    (WIDTH + PHONE + 2 * GAP, HEIGHT + GAP, WIDTH - PHONE - GAP, "dark", "training"),
]


def view(browser: Browser, width: int, scheme: str, section: str) -> Image.Image:
    """Return a section of the page in a window of some width."""
    page = browser.new_page(
        viewport={"width": width, "height": HEIGHT},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    page.goto(PAGE.resolve().as_uri() + ("" if section == "result" else f"#{section}"))
    return Image.open(io.BytesIO(page.screenshot()))


def main() -> None:
    """Put the views side by side."""
    whole = Image.new("RGB", (2 * WIDTH + GAP, 2 * HEIGHT + GAP), "#c8ced6")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for x, y, width, scheme, section in VIEWS:
            whole.paste(view(browser, width, scheme, section), (x, y))
        browser.close()
    whole = whole.resize((whole.width * 2 // 3, whole.height * 2 // 3), Image.Resampling.LANCZOS)
    whole.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(OUT, optimize=True)


if __name__ == "__main__":
    main()
