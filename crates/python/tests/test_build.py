"""The build backend."""

import importlib
import sys
from pathlib import Path

import pytest

CRATE = Path(__file__).resolve().parent.parent


@pytest.fixture
def backend(monkeypatch):
    pytest.importorskip("maturin")
    monkeypatch.syspath_prepend(str(CRATE / "backend"))
    monkeypatch.delitem(sys.modules, "pagelab_build", raising=False)
    return importlib.import_module("pagelab_build")


def test_without_rust_one_line_says_what_to_do(backend, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        backend.get_requires_for_build_wheel()
    said = str(ended.value)
    assert "\n" not in said and "https://rustup.rs" in said and "wheel" in said


def test_with_rust_nothing_else_is_wanted(backend, monkeypatch, tmp_path):
    (tmp_path / "cargo").write_text("#!/bin/sh\necho cargo 1.99.0\n")
    (tmp_path / "cargo").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(CRATE)
    assert not [name for name in backend.get_requires_for_build_wheel() if "rust" in name or "puccinialin" in name]
