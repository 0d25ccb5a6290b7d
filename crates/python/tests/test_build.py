"""The build backend: what it says without Rust, and which commit a wheel is of."""

import importlib
import subprocess
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


def test_a_package_tells_its_commit(backend, monkeypatch, tmp_path):
    def git(*words):
        return subprocess.run(["git", "-C", tmp_path, *words], check=True, capture_output=True, text=True).stdout.strip()

    monkeypatch.setattr(backend, "WORKSPACE", tmp_path)
    assert backend.commit() is None, "no clone"
    git("init", "--quiet")
    git("config", "user.email", "nobody@example.org")
    git("config", "user.name", "nobody")
    (tmp_path / "Cargo.toml").write_text("[workspace]\n")
    (tmp_path / "other").write_text("")
    git("add", "other")
    git("commit", "--quiet", "-m", "Begin")
    assert backend.commit() is None, "a clone of something else"
    git("add", "Cargo.toml")
    git("commit", "--quiet", "-m", "Add")
    assert backend.commit() == git("rev-parse", "HEAD")
    (tmp_path / "Cargo.toml").write_text("[workspace]\nresolver = '2'\n")
    first = backend.commit()
    assert first.startswith(git("rev-parse", "HEAD") + "+")
    (tmp_path / "Cargo.toml").write_text("[workspace]\nresolver = '3'\n")
    assert backend.commit() not in (first, git("rev-parse", "HEAD"))
    backend.record_commit(tmp_path)
    assert (tmp_path / "commit").read_text() == backend.commit()
