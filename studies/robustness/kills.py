"""Kill the real pipeline under real DVC at random moments, and compare the result with a run without kills.

Two clones of what is committed: in one ``dvc repro`` runs through, in the other it is killed again and again, is
started again each time, and begins from nothing when it was quicker than the kills. What is killed is drawn too: dvc
itself, by SIGKILL or SIGTERM, all processes at once as from a keyboard, or the process of the stage alone. Writes
studies/results/kills.json.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import psutil
import typer
from ruamel.yaml import YAML

from mela.errors import MelaError
from mela.io import store
from studies.clones import change, for_clone

ROOT = Path(__file__).parents[2]
RESULT = Path("studies/results/kills.json")
WAYS = ("dvc SIGKILL", "dvc SIGTERM", "all SIGINT", "stage SIGKILL", "stage SIGTERM")
LONGEST_END = 30.0
OF_DVC = {".dvc/tmp/rwlock": "Unable to read RWLock-file", "dvc.lock": "dvc.lock' is invalid"}


def clone(folder: Path, seconds: float) -> None:
    """Clone what is committed, without outputs, and with checkpoints `seconds` apart."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    change(folder / "params.yaml", {"runtime.checkpoint_seconds": seconds, "report.usage": False})
    forget(folder)


def forget(folder: Path) -> None:
    """Delete all outputs and what DVC knows of them."""
    (folder / "dvc.lock").unlink(missing_ok=True)
    for name in ("models", "results", ".checkpoints", ".dvc/cache", "data/images", "data/labels", "data/manifest"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in ("data/truth.parquet", "data/features.parquet"):
        (folder / name).unlink(missing_ok=True)


def begin(folder: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start ``dvc repro``; it prints to the log."""
    environment = for_clone(DVC_SITE_CACHE_DIR=str(folder.parent / f"{folder.name}.site"), PYTHONUNBUFFERED="1")
    with log.open("ab") as file:
        return subprocess.Popen(
            ["dvc", "repro"],
            cwd=folder,
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def kill(dvc: subprocess.Popen[bytes], how: str) -> bool:
    """Kill in one of WAYS; return False if there is no stage to kill."""
    target, name = how.split()
    number = signal.Signals[name]
    if target == "dvc":
        dvc.send_signal(number)
    elif target == "all":
        os.killpg(dvc.pid, number)
    else:
        stages = [process for process in psutil.Process(dvc.pid).children() if _stage(process)]
        if not stages:
            return False
        stages[0].send_signal(number)
    return True


def _stage(process: psutil.Process) -> str:
    try:
        found = re.search(r"-m stages\.(\w+)", " ".join(process.cmdline()))
    except psutil.Error:
        return ""
    return found[1] if found else ""


def running(folder: Path) -> list[psutil.Process]:
    """Return the processes that work in a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()) == folder:
                found.append(process)
        except psutil.Error:
            continue
    return found


def seconds_until_idle(folder: Path) -> float:
    """Return how long processes go on in a folder after a kill."""
    start = time.perf_counter()
    while left := running(folder):
        if time.perf_counter() - start > LONGEST_END:
            names = ", ".join(" ".join(process.cmdline()) for process in left)
            raise MelaError(f"expected all processes to end within {LONGEST_END:g} s of a kill, found {names}")
        time.sleep(0.05)
    return time.perf_counter() - start


def mend(folder: Path, said: str) -> str:
    """Delete the file of DVC's own that it could not read, as users have to, and return its name.

    DVC writes them in place, and cannot start where it was killed in that moment.
    """
    for name, sign in OF_DVC.items():
        if sign in said:
            (folder / name).unlink()
            return name
    raise MelaError(f"dvc repro after a kill: expected it to go on, got {said[-1000:]}")


def taken(log: Path) -> str:
    """Return what a log holds, and remove the log."""
    text = log.read_text(encoding="utf-8")
    log.unlink()
    return text


def outputs(folder: Path) -> dict[str, str]:
    """Return the hash of every output, as dvc.lock has it."""
    lock = YAML(typ="safe").load((folder / "dvc.lock").read_text(encoding="utf-8"))
    return {out["path"]: out["md5"] for stage in lock["stages"].values() for out in stage["outs"]}


def different(whole: Path, killed: Path) -> list[str]:
    """List outputs of the run that was not killed that are not the same in the other."""
    found = outputs(killed)
    return [path for path, md5 in outputs(whole).items() if found.get(path) != md5]


def main(
    kills: Annotated[int, typer.Option(help="how many")] = 60,
    longest: Annotated[float, typer.Option(help="seconds from a start to its kill, at most")] = 25,
    seconds: Annotated[float, typer.Option(help="between two checkpoints")] = 2,
    seed: int = 0,
) -> None:
    """Kill, compare, and report."""
    draw = random.Random(seed)
    done, stages, mended = Counter[str](), Counter[str](), Counter[str]()
    differ: list[str] = []
    slowest, begun, text = 0.0, 1, ""
    with TemporaryDirectory() as name:
        whole, killed = (Path(name).resolve() / part for part in ("whole", "killed"))
        for folder in (whole, killed):
            clone(folder, seconds)
        if begin(whole, Path(name) / "whole.log").wait():
            raise MelaError(f"dvc repro: expected it to succeed, got {(Path(name) / 'whole.log').read_text()[-500:]}")
        log = Path(name) / "killed.log"
        while True:
            dvc, how = begin(killed, log), draw.choice(WAYS)
            try:
                status = dvc.wait(draw.uniform(0, longest) if done.total() < kills else None)
            except subprocess.TimeoutExpired:
                stage = next((found for process in running(killed) if (found := _stage(process))), "between stages")
                if not kill(dvc, how):
                    how = "dvc SIGKILL"
                    kill(dvc, how)
                dvc.wait(LONGEST_END)
                slowest = max(slowest, seconds_until_idle(killed))
                done[how] += 1
                stages[stage] += 1
                text += taken(log)
                print(f"{done.total()}: {how} in {stage}", flush=True)
                continue
            said = taken(log)
            text += said
            if status:
                mended[mend(killed, said)] += 1
                continue
            differ += different(whole, killed)
            if done.total() >= kills:
                break
            forget(killed)
            begun += 1
        left = [path for path in killed.rglob("*.tmp") if ".dvc" not in path.parts and ".checkpoints" not in path.parts]
    tracebacks = len(re.findall("Traceback", text))
    result: dict[str, Any] = {
        "kills": done.total(),
        "of": dict(sorted(done.items())),
        "in": dict(sorted(stages.items())),
        "runs": begun,
        "outputs_that_differ": len(differ),
        "trainings_that_went_on": len(re.findall("goes on after", text)),
        "files_of_dvc_deleted": dict(sorted(mended.items())),
        "tracebacks_of_stages": tracebacks,
        "temporary_files_left": len(left),
        "slowest_end_s": round(slowest, 2),
        "seed": seed,
    }
    store.write_json(RESULT, result)
    print(result)
    if differ:
        raise MelaError(f"{differ[0]}: expected the bytes of the run that was not killed, got others")
    if left:
        raise MelaError(f"{left[0].name}: expected no temporary file in the end, found it")
    if tracebacks:
        raise MelaError(f"expected lines from stages that were killed, got {text[text.index('Traceback') :][:2000]}")
