"""The page of a review in a real browser: by keys and clicks, in two tabs, and when its program is killed."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from mela.labeling.correction_tables import read_corrections
from mela.labeling.given_names import read_given_names
from tests.helpers.browser import DESKTOP, NEEDED, PHONE, opened, sideways, violations

TABLE, NAMES = Path("corrections.csv"), Path("class_names.csv")

pytestmark = NEEDED


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened() as browser:
        yield browser


class Program:
    """`mela review` in a folder, and the address that it says."""

    def __init__(self, port: int = 0) -> None:
        command = [sys.executable, "-m", "mela", "review", "--no-browser", "--port", str(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            if found := re.search(r"http://127\.0\.0\.1:(\d+)/\S+/", line):
                self.address, self.port = found[0], int(found[1])
                break
        else:
            raise AssertionError("".join(self.said))

    def end(self, number: signal.Signals = signal.SIGINT) -> str:
        self.process.send_signal(number)
        return self.process.communicate(timeout=20)[0]


@pytest.fixture
def program(people_copied: Path) -> Iterator[Program]:
    program = Program()
    yield program
    if program.process.poll() is None:
        program.end(signal.SIGKILL)


@contextmanager
def page_of(browser: Browser, address: str, **options: object) -> Iterator[Page]:
    """A page that is open and shows a question; nothing may go wrong on it, nor may it ask anybody else."""
    context = browser.new_context(**{"viewport": DESKTOP, "reduced_motion": "reduce"} | options)  # type: ignore[arg-type]
    page, problems, requests = context.new_page(), [], []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(address)
    expect(page.locator("section img").first).to_be_visible()
    yield page
    context.close()
    assert [url for url in requests if not url.startswith((address, "data:"))] == []
    # what the browser itself says of a program that was killed, or of an answer that was refused
    assert [one for one in problems if "Failed to load resource" not in one] == []


def count(page: Page, name: str) -> str:
    return page.locator("#figures div", has_text=name).locator("dd").inner_text()


@pytest.mark.parametrize(
    "options",
    [{}, {"color_scheme": "dark"}, {"viewport": PHONE, "is_mobile": True, "has_touch": True}],
    ids=["desktop", "dark", "phone"],
)
def test_everybody_gets_along_with_it(options: dict[str, object], browser: Browser, program: Program) -> None:
    with page_of(browser, program.address, **options) as page:
        assert violations(page) == []
        assert sideways(page) <= 0
        broken = "[...document.images].filter(image => !image.complete || !image.naturalWidth).length"
        page.wait_for_load_state("networkidle")
        assert page.evaluate(broken) == 0
        page.get_by_role("button", name="Same").click()
        expect(page.locator("#figures")).to_contain_text("answers1")
        assert violations(page) == []


def test_keys_and_clicks_answer(browser: Browser, program: Program) -> None:
    with page_of(browser, program.address) as page:
        for key, answers, skipped in [("s", "1", "0"), ("D", "2", "0"), ("k", "2", "1")]:
            page.keyboard.press(key)
            expect(page.locator("#figures")).to_contain_text(f"answers{answers}skipped{skipped}")
        assert page.locator("#status").inner_text()
        page.get_by_role("button", name="Different").click()
        expect(page.locator("#figures")).to_contain_text("answers3")
        assert [said.same for said in read_corrections(TABLE)] == [True, False, False]
        # a shortcut of the browser is no answer
        page.keyboard.press("Control+d")
        page.keyboard.press("u")
        expect(page.locator("#figures")).to_contain_text("answers2skipped1")
        page.keyboard.press("u")
        expect(page.locator("#figures")).to_contain_text("answers2skipped0")
        assert len(read_corrections(TABLE)) == 2
        page.reload()
        expect(page.locator("#figures")).to_contain_text("answers2")
        heading = page.locator("h2").first.inner_text()
        page.reload()
        expect(page.locator("h2").first).to_have_text(heading)
    assert "2 answers are in corrections.csv" in program.end()
    assert program.process.returncode == 0


def test_two_tabs_do_not_answer_twice(browser: Browser, program: Program) -> None:
    with page_of(browser, program.address) as one, page_of(browser, program.address) as other:
        assert one.locator("h2").all_inner_texts() == other.locator("h2").all_inner_texts()
        one.keyboard.press("s")
        expect(one.locator("#figures")).to_contain_text("answers1")
        other.keyboard.press("d")
        expect(other.locator("#problem")).to_contain_text("answered meanwhile")
        expect(other.locator("#figures")).to_contain_text("answers1")
        assert one.locator("h2").all_inner_texts() == other.locator("h2").all_inner_texts()
        other.keyboard.press("d")
        expect(other.locator("#problem")).to_be_hidden()
        expect(other.locator("#figures")).to_contain_text("answers2")
    assert [said.same for said in read_corrections(TABLE)] == [True, False]


def test_nothing_is_lost_when_the_program_is_killed(browser: Browser, program: Program) -> None:
    with page_of(browser, program.address) as page:
        page.keyboard.press("s")
        expect(page.locator("#figures")).to_contain_text("answers1")
        program.end(signal.SIGKILL)
        page.keyboard.press("s")
        expect(page.locator("#problem")).to_contain_text("does not answer")
    assert len(read_corrections(TABLE)) == 1
    again = Program(program.port)
    try:
        assert again.address != program.address, "an old address is worth nothing"
        with page_of(browser, again.address) as page:
            assert count(page, "answers") == "1"
            page.keyboard.press("u")
            expect(page.locator("#figures")).to_contain_text("answers0")
    finally:
        again.end()
    assert read_corrections(TABLE) == []


def test_hostile_names_are_text(browser: Browser, program: Program) -> None:
    with page_of(browser, program.address) as page:
        seen = ""
        for _ in range(60):
            seen += page.locator("main").inner_text()
            if "<img" in seen:
                break
            page.keyboard.press("k")
            page.wait_for_timeout(50)
        assert "<img" in seen, "else no hostile name was shown"
        assert page.evaluate("window.hacked") is None
        assert page.locator("main script, main img[onerror]").count() == 0


def test_a_class_gets_a_name(browser: Browser, program: Program) -> None:
    with page_of(browser, program.address) as page:
        inputs = page.get_by_label("Its class is called")
        # letters that answer elsewhere
        inputs.first.press_sequentially("skids")
        inputs.first.press("Enter")
        expect(page.locator("#figures")).to_contain_text("classes with a name1")
        expect(page.locator("#figures")).to_contain_text("answers0skipped0")
        assert [given.name for given in read_given_names(NAMES)] == ["skids"]
        # the first question is whether two labels are rightly in one class
        expect(inputs.last).to_have_value("skids")
        # a click elsewhere keeps a name as well, and is an answer at once
        inputs.last.fill("dusk")
        page.get_by_role("button", name="Skip").click()
        expect(page.locator("#figures")).to_contain_text("skipped1")
        assert [given.name for given in read_given_names(NAMES)] == ["skids", "dusk"]
        page.keyboard.press("u")
        expect(page.locator("#figures")).to_contain_text("skipped0")
        expect(inputs.last).to_have_value("dusk")
        page.keyboard.press("u")
        expect(inputs.first).to_have_value("skids")
        page.reload()
        expect(inputs.first).to_have_value("skids")
        inputs.first.fill("<img src=x onerror=alert(1)>")
        inputs.first.press("Enter")
        expect(page.locator("#status")).to_contain_text("<img src=x")
        assert violations(page) == []


def test_keys_can_be_switched_off(browser: Browser, program: Program) -> None:
    with page_of(browser, program.address) as page:
        box = page.get_by_label("Answer by keys")
        box.uncheck()
        page.keyboard.press("s")
        page.reload()
        expect(box).not_to_be_checked()
        (cookie,) = page.context.cookies()
        assert (cookie["value"], cookie["path"]) == ("off", "/"), "another run has another port and another token"
        page.keyboard.press("s")
        page.get_by_role("button", name="Different").click()
        expect(page.locator("#figures")).to_contain_text("answers1")
        assert [said.same for said in read_corrections(TABLE)] == [False]
