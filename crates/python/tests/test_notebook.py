"""Runs performed and read back."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import pagelab as pl


@pytest.fixture
def notebook(tmp_path):
    return tmp_path / "runs.db"


def test_a_run_is_kept_and_shown(notebook):
    shown = pl.run("mapanon", on=["model:lru", "model:opt"], pages=500, references=20_000, memory="100p", notebook=notebook)
    assert [one["name"] for one in shown.to_dict()["runs"]] == ["mapanon-1", "mapanon-2"]
    book = pl.Notebook(notebook)
    runs = book.runs()
    assert runs["target"] == ["model:lru", "model:opt"] and runs["done"] == [1, 1]
    assert "memory=100p" in runs["conditions"][0]
    seen = book.observations("@1").to_dict()
    faults = [value for name, value in zip(seen["name"], seen["value"], strict=True) if name == "faults.major"]
    assert len(faults) == 1 and faults[0] > 0
    compared = book.compare("mapanon-1", "mapanon-2")
    assert "faults.major" in repr(compared) and compared.to_dict()[0]["metrics"]
    assert "mapanon-1" in book.findings()["run"]
    assert "<svg" in shown.html and shown._repr_html_().startswith("<iframe srcdoc=")
    assert "mapanon-1" in repr(book.run("mapanon-1"))


def test_curves_are_kept_like_those_of_the_command_line(notebook):
    trace = pl.pattern("zipf:0.9", pages=500, references=20_000)
    table = pl.mrc(trace, ["lru", "opt"], sizes=[10, 100])
    assert pl.Notebook(notebook).keep(table, "curve") == ["curve-1", "curve-2"]
    shown = pl.Notebook(notebook).run("curve-1")
    assert "lru" in repr(shown) and "<svg" in table._repr_html_().replace("&lt;", "<")
    command = [sys.executable, "-m", "pagelab._command", "--notebook", str(notebook), "export", "curve-1", "--format", "json"]
    printed = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert "miss.ratio" in json.dumps(printed)


def test_what_cannot_be_performed_says_why(notebook):
    with pytest.raises(pl.PagelabError, match="unknown target"):
        pl.run("mapanon", on="hots", notebook=notebook)
    with pytest.raises(pl.PagelabError, match="swap"):
        pl.run("mapanon", on="model:lru", swap="zram", notebook=notebook)
    missing = pl.Notebook(notebook.with_name("none.db"))
    for call in (missing.run, missing.runs, missing.observations, missing.assess, missing.findings):
        with pytest.raises(pl.PagelabError, match="none.db"):
            call()


def test_a_run_ends_with_the_process_that_asked_for_it(notebook):
    program = f"""
import pagelab as pl
pl.run("command", memory="none", program=["sleep", "300"], notebook={str(notebook)!r})
"""
    child = subprocess.Popen([sys.executable, "-c", program])

    def descendants():
        found = subprocess.run(["pgrep", "-P", str(child.pid)], capture_output=True, text=True).stdout
        return [int(line) for line in found.split()]

    deadline = time.monotonic() + 30
    while not (pids := descendants()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert pids
    time.sleep(1)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
