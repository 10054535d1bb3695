"""A review without its page: questions, answers, and a table that several may write into."""

import errno
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from mela.errors import MelaError
from mela.labeling.correction_tables import read_corrections
from mela.labeling.given_names import read_given_names
from mela.review import project as files
from mela.review.project import Project, read_project
from mela.review.server import application
from mela.review.session import AnsweredError, Session
from stages.common import paths
from tests.helpers.commands import mela
from tests.helpers.people import HOSTILE
from tests.helpers.project import run_stages

TABLE, NAMES = Path("mine.csv"), Path("names.csv")


@pytest.fixture(scope="module")
def project(of_people: Path) -> Project:
    return read_project(of_people)


@pytest.fixture
def session(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.chdir(tmp_path)
    return Session(project, TABLE, NAMES)


@pytest.fixture
def client(project: Project, session: Session) -> Iterator[TestClient]:
    with TestClient(application(project, session, "secret"), base_url="http://127.0.0.1:1234") as client:
        yield client


def asked(state: dict) -> tuple[int, int]:
    return state["question"]["one"], state["question"]["other"]


def test_the_files_are_those_of_the_stages() -> None:
    own = (files.IMAGES, files.TRAIN, files.NAMES, files.SOURCES, files.FEATURES, files.LAST_ROUND)
    assert own == (
        paths.IMAGES,
        paths.TRAIN,
        paths.TASK_NAMES,
        paths.TASK_SOURCES,
        paths.FEATURES,
        paths.LAST_ROUND,
    )


def test_a_project_has_all_training_labels_with_names_and_images(project: Project) -> None:
    n = len(project.corrections.clusters)
    assert len(project.names) == len(project.shown) == n == project.corrections.starts[-1]
    assert all(len(images) == 4 for images in project.shown)
    assert len({task for task, _ in project.names}) == len(project.corrections.starts) - 1


def test_answers_are_in_the_table_before_the_next_question(session: Session, project: Project) -> None:
    state = session.state()
    one, other = asked(state)
    told = session.answer(one, other, "different")
    (said,) = read_corrections(TABLE)
    assert (said.one, said.other, said.same) == (project.names[one], project.names[other], False)
    assert told["answers"] == 1
    assert asked(told) != (one, other)
    assert told["changed"]


def test_no_question_comes_twice(session: Session) -> None:
    state, seen = session.state(), set()
    while state["question"]:
        pair = asked(state)
        assert pair not in seen
        seen.add(pair)
        state = session.answer(*pair, ("same", "different", "skip")[len(seen) % 3])
    assert len(seen) > 20
    assert state["left"] == 0


def test_two_pages_and_people_who_edit_the_table_see_the_same(session: Session, project: Project) -> None:
    other = Session(project, TABLE, NAMES)
    pair = asked(session.state())
    session.answer(*pair, "same")
    assert other.state() == session.state()
    for answer in ("same", "different"):
        with pytest.raises(AnsweredError, match="this was answered meanwhile"):
            other.answer(*pair, answer)
    TABLE.write_text("", encoding="utf-8")
    assert session.state()["answers"] == 0
    assert asked(session.state()) == pair


def test_undo_takes_back_the_last_answer_even_after_a_new_start(session: Session, project: Project) -> None:
    first = session.state()
    for _ in range(2):
        session.answer(*asked(session.state()), "different")
    again = Session(project, TABLE, NAMES)
    again.undo()
    assert len(read_corrections(TABLE)) == 1
    assert {**again.undo(), "changed": ""} == first
    assert {**again.undo(), "changed": ""} == first, "nothing is left to take back"


def test_undo_takes_back_what_was_done_last(session: Session) -> None:
    session.answer(*asked(session.state()), "same")
    pair = asked(session.state())
    session.answer(*pair, "skip")
    told = session.undo()
    assert (told["answers"], told["skipped"], asked(told)) == (1, 0, pair)
    told = session.undo()
    assert told["answers"] == 0
    assert "Taken back that" in told["changed"]


def test_a_table_needs_a_folder(project: Project) -> None:
    with pytest.raises(MelaError, match="expected a file in a folder that exists, found no nowhere; make it"):
        Session(project, Path("nowhere/mine.csv"), NAMES)


def test_what_the_disk_refuses_is_told_on_the_page(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = asked(client.get("/secret/state").json())
    monkeypatch.setattr("os.fsync", full)
    refused = client.post("/secret/answer", json={"one": one, "other": other, "answer": "same"})
    assert (refused.status_code, "No space left" in refused.json()["error"]) == (500, True)


def full(file: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device", str(TABLE))


def test_a_question_that_was_passed_over_comes_back_by_undo(session: Session) -> None:
    pair = asked(session.state())
    assert asked(session.answer(*pair, "skip")) != pair
    assert not TABLE.exists()
    assert asked(session.undo()) == pair


def test_what_is_no_correction_is_told(session: Session) -> None:
    TABLE.write_text("task,label\na,b\n", encoding="utf-8")
    with pytest.raises(MelaError, match=r"mine\.csv: expected the column"):
        session.state()


def test_the_stages_keep_to_what_was_answered(people_copied: Path) -> None:
    session = Session(read_project(), paths.CORRECTIONS, paths.CLASS_NAMES)
    for number in range(6):
        state = session.answer(*asked(session.state()), "same" if number % 2 else "different")
    run_stages("corrections", "label_merged")
    found = read_project()
    assert session.state() == Session(found, paths.CORRECTIONS, paths.CLASS_NAMES).state(), (
        "the clusters before are the same"
    )
    assert state["answers"] == 6


def test_only_those_who_know_the_token_see_anything(client: TestClient) -> None:
    for path in ("", "state", "review.js", "image/0"):
        assert client.get(f"/secret/{path}").status_code == 200
        assert client.get(f"/secreT/{path}").status_code == 404
        assert client.get(f"/secret/{path}", headers={"Host": "evil.example"}).status_code == 400
    assert client.post("/other/undo").status_code == 404
    assert client.get("/").status_code == 404
    headers = client.get("/secret/").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer", "else a link would tell the token"


def test_the_page_gets_questions_and_gives_answers(client: TestClient, project: Project) -> None:
    state = client.get("/secret/state").json()
    one, other = asked(state)
    assert [side["label"] for side in state["question"]["sides"]] == [project.names[row][1] for row in (one, other)]
    number = state["question"]["sides"][0]["images"][0]
    with Image.open(BytesIO(client.get(f"/secret/image/{number}").content)) as image:
        np.testing.assert_array_equal(np.asarray(image), project.images[number].squeeze())
    told = client.post("/secret/answer", json={"one": one, "other": other, "answer": "same"}).json()
    assert told["answers"] == 1
    again = client.post("/secret/answer", json={"one": one, "other": other, "answer": "same"})
    assert again.status_code == 409
    assert "answered meanwhile" in again.json()["error"]
    assert client.post("/secret/undo").json()["answers"] == 0


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[" * 900,
        " " * 5000,
        "[]",
        "{}",
        '{"one": 1, "other": 2, "answer": "maybe"}',
        '{"one": true, "other": 2, "answer": "same"}',
    ],
)
def test_other_requests_are_refused(content: str, client: TestClient) -> None:
    assert client.post("/secret/answer", content=content).status_code == 400
    assert not TABLE.exists()


def test_there_is_no_question_about_labels_that_are_not_there(client: TestClient) -> None:
    refused = client.post("/secret/answer", json={"one": -1, "other": 10**6, "answer": "same"})
    assert (refused.status_code, refused.json()["error"]) == (409, "there is no such question; reload the page")
    for number in ("1000000", "9" * 5000, "-1", "1.5", "²"):
        assert client.get(f"/secret/image/{number}").status_code == 404


def test_a_damaged_table_is_told_on_the_page(client: TestClient) -> None:
    TABLE.write_text("nonsense", encoding="utf-8")
    told = client.get("/secret/state")
    assert (told.status_code, "mine.csv: expected" in told.json()["error"]) == (500, True)


def test_names_are_text_whatever_they_are(project: Project) -> None:
    assert {label for _, label in project.names} & set(HOSTILE)


def test_who_lacks_the_packages_is_told_which(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "uvicorn" or name == "mela.review.server"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = mela("review")
    assert (done.returncode, done.stderr) == (
        1,
        "error: review: expected the package uvicorn, which is not installed; run `pip install -e '.[review]'` in a "
        "clone of the project, or `pip install starlette uvicorn` elsewhere\n",
    )


def test_a_folder_without_a_run_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "params.yaml: no such file; go to the folder of a project" in mela("review").stderr


def test_a_name_is_that_of_the_class_and_can_be_taken_back(session: Session, project: Project) -> None:
    question = session.state()["question"]
    one, other = (side["row"] for side in question["sides"])
    told = session.name(one, "  fly agaric ")
    (given,) = read_given_names(NAMES)
    assert (given.label, given.name) == (project.names[one], "fly agaric")
    assert (told["named"], told["undo"], told["answers"]) == (1, True, 0)
    assert told["question"]["sides"][0]["called"] == "fly agaric"
    assert asked(told) == (one, other), "the question stays"
    assert session.name(one, "fly agaric")["changed"] == "", "nothing is written twice"
    assert len(read_given_names(NAMES)) == 1
    # both are one class then, and its last name is that of the class
    session.name(other, "toadstool")
    session.answer(one, other, "same")
    assert session.state()["named"] == 1
    for left, answers in [(2, 0), (1, 0), (0, 0)]:
        told = session.undo()
        assert (len(read_given_names(NAMES)), told["answers"]) == (left, answers)
    assert told["named"] == 0
    assert not told["undo"]


def test_a_name_is_taken_away_by_an_empty_one(session: Session) -> None:
    row = session.state()["question"]["one"]
    session.name(row, "fly agaric")
    assert session.name(row, " ")["named"] == 0
    assert session.undo()["named"] == 1


def test_names_that_somebody_takes_out_of_the_table_are_gone(session: Session) -> None:
    row = session.state()["question"]["one"]
    session.answer(*asked(session.state()), "different")
    session.name(row, "fly agaric")
    NAMES.unlink()
    told = session.undo()
    assert (told["named"], told["answers"]) == (0, 1), "no answer is taken back in its place"


@pytest.mark.parametrize("name", ["x" * 61, "a\nb", "\u202e"])
def test_a_name_that_cannot_be_shown_is_refused(name: str, client: TestClient) -> None:
    row = client.get("/secret/state").json()["question"]["one"]
    refused = client.post("/secret/name", json={"row": row, "name": name})
    assert refused.status_code == 409
    assert refused.json()["error"].startswith("expected a name ")
    assert not NAMES.exists()
    assert client.post("/secret/name", json={"row": 10**6, "name": "x"}).status_code == 409
    for content in ({"row": str(row), "name": "x"}, {"row": row, "name": 1}, {"row": row}):
        assert client.post("/secret/name", json=content).status_code == 400
    assert client.post("/secret/name", json={"row": row, "name": "x" * 60}).json()["named"] == 1


def test_names_and_corrections_are_two_tables(project: Project, tmp_path: Path) -> None:
    with pytest.raises(MelaError, match="expected another file for names"):
        Session(project, tmp_path / "one.csv", tmp_path / "../" / tmp_path.name / "one.csv")
