"""The stub says what the module has, by mypy's stubtest, and checkers know what may be given."""

import subprocess
import sys

import pytest

pytest.importorskip("mypy")

LACKING = """
[mypy]
[mypy-pagelab._pagelab,fsspec.*,tqdm.*,distributed.*]
ignore_missing_imports = True
"""

# What the checkers accept, and what not: each such line has a comment for them.
USE = """
from pathlib import Path

import numpy as np

import pagelab as pl


class Own:
    def __init__(self, frames: int) -> None: ...
    def on_hit(self, page: int) -> None: ...
    def on_miss(self, page: int) -> int | None: ...


trace: pl.Trace = pl.pattern("zipf:0.9", pages=10, references=100)
numbers = np.arange(10, dtype=np.uint32)
for source in (trace, numbers, "file", Path("file"), [1, 2, 3], range(3)):
    pl.replay(source, "lru", 5)
pl.replay(trace, ["lru", Own], [1, "10%"])
pl.replay(trace, ("lru", "opt"), np.array([1, 2]))
pl.replay(trace, Own, np.int64(5))
pl.mrc(trace, None, np.geomspace(1, 100, 5).astype(int))
table: pl.Table = pl.mrc(trace, sizes=range(1, 5))
names: list[str] = [row["policy"] for row in table]
pages: list[int] = list(trace)
pl.Trace([1, 2]), pl.Trace(numbers)


def fleet(lab: pl.Lab) -> None:
    lab.replay(["a", "b"], "lru", np.array([1, 2]))
    lab.mrc("a", sizes=[1, "64M"])


pl.replay(trace, "lru")  # type: ignore[call-arg]
pl.replay(trace, 5, 5)  # type: ignore[arg-type]
pl.replay(trace, "lru", 5.0)  # type: ignore[arg-type]
pl.Trace(object())  # type: ignore[arg-type]
"""


def checked(tmp_path, *words):
    config = tmp_path / "mypy.ini"
    config.write_text(LACKING)
    run = subprocess.run([sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_stub_is_that_of_the_module(tmp_path):
    checked(tmp_path, "mypy.stubtest", "--mypy-config-file", "mypy.ini", "pagelab")


@pytest.mark.parametrize("checker", [("mypy", "--strict", "--warn-unused-ignores"), ("basedpyright", "--pythonpath", sys.executable)])
def test_checkers_know_what_may_be_given(tmp_path, checker):
    pytest.importorskip(checker[0])
    (tmp_path / "use.py").write_text(USE)
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard", "reportUnusedExpression": false}')
    checked(tmp_path, *checker, "use.py")
