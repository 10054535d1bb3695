"""Many errors of one kind are one line, and no kind is lost among the others."""

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mela.io.reading_errors import AboutFile
from mela.sources.check.error_kinds import in_kinds, lines


def unreadable(path: str) -> AboutFile:
    return AboutFile(f"image {path!r}: expected a readable image, got OSError: truncated; replace the file", path)


def test_the_same_error_19000_times_is_one_line_beside_the_others() -> None:
    many = [unreadable(f"a/{n}.jpg") for n in range(19_000)]
    other = "mine/tasks.csv, line {}: expected a label, got an empty cell; fill it or remove the row"
    rows = [other.format(line) for line in (7, 9)]
    alone = "data.table: expected a readable file; set data.table"
    assert list(lines([*many, *rows, alone])) == [
        f"{many[0]} (19000 times, also for 'a/1.jpg', 'a/2.jpg', ...)",
        f"{rows[0]} (2 times, also for mine/tasks.csv, line 9)",
        alone,
    ]


def test_what_is_quoted_tells_errors_of_one_place_apart() -> None:
    errors = [f"mine: expected real folders, got the symbolic link {name!r}; put a copy" for name in ("a", "it's", "c")]
    assert list(lines(errors)) == [f"{errors[0]} (3 times, also for \"it's\", 'c')"]


def test_paths_that_are_not_quoted_do_not_make_kinds() -> None:
    errors = [AboutFile(f"/mine/{name}: Permission denied; check", name) for name in ("a.png", "b (2).png", "c/d.png")]
    assert list(lines(errors)) == [f"{errors[0]} (3 times, also for 'b (2).png', 'c/d.png')"]


def test_different_errors_of_one_file_are_different_kinds() -> None:
    errors = ["image 'a': expected at most 9 pixels, got 10 x 20; make it smaller", "image 'a': expected a still image"]
    assert list(lines(errors)) == errors


@hypothesis_settings(deadline=None, max_examples=200)
@given(errors=st.lists(st.one_of(st.text(), st.text().map(unreadable)), max_size=20))
def test_no_error_is_lost(errors: list[str]) -> None:
    kinds = in_kinds(errors)
    assert sorted(error for kind in kinds for error in kind) == sorted(errors)
    assert len(list(lines(errors))) == len(kinds)


@hypothesis_settings(deadline=None, max_examples=200)
@given(names=st.lists(st.text(min_size=1), min_size=2, max_size=5, unique=True))
def test_files_of_any_name_have_one_kind_of_error(names: list[str]) -> None:
    assert len(in_kinds(unreadable(name) for name in names)) == 1
