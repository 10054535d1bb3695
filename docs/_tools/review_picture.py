"""Draw review.png: the page of `mela review`, for a run of glyphs by people in FOLDER (needs Chromium)."""

import io
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer
from PIL import Image
from playwright.sync_api import sync_playwright

OUT = Path(__file__).parents[1] / "images/review.png"
GAP, HEIGHT, DESKTOP, PHONE = 20, 860, 1100, 390


def main(folder: Annotated[Path, typer.Argument(help="Where such a run was")]) -> None:
    """Put the page by day and, on a phone, by night side by side."""
    command = [sys.executable, "-m", "mela", "review", "--no-browser"]
    program = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    address = next(found[0] for line in program.stdout if (found := re.search(r"http://\S+/", line)))
    whole = Image.new("RGB", (DESKTOP + GAP + PHONE, HEIGHT), "#c8ced6")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for x, width, scheme in ((0, DESKTOP, "light"), (DESKTOP + GAP, PHONE, "dark")):
            page = browser.new_page(
                viewport={"width": width, "height": HEIGHT}, color_scheme="dark" if scheme == "dark" else "light"
            )
            page.goto(address)
            page.wait_for_load_state("networkidle")
            whole.paste(Image.open(io.BytesIO(page.screenshot())), (x, 0))
        browser.close()
    program.send_signal(signal.SIGINT)
    program.wait()
    whole.quantize(64, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(OUT, optimize=True)


if __name__ == "__main__":
    typer.run(main)
