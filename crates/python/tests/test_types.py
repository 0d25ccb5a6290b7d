"""The stub says what the module has: names, arguments and their defaults, by mypy's stubtest."""

import subprocess
import sys

import pytest

pytest.importorskip("mypy")

LACKING = """
[mypy]
[mypy-pagelab._pagelab,fsspec.*,tqdm.*]
ignore_missing_imports = True
"""


def test_the_stub_is_that_of_the_module(tmp_path):
    config = tmp_path / "mypy.ini"
    config.write_text(LACKING)
    command = [sys.executable, "-m", "mypy.stubtest", "--mypy-config-file", str(config), "pagelab"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
