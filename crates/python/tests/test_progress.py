"""Long calls show a bar of tqdm's to whoever looks, and none to a pipe."""

import sys

import pytest

import pagelab as pl
from pagelab import _progress

pytest.importorskip("tqdm")


def test_a_long_call_shows_its_bar(monkeypatch, capsys):
    trace = pl.pattern("zipf:0.9", pages=50_000, references=3_000_000)
    monkeypatch.setattr(_progress, "PATIENCE", 0.0)
    # Tests of notebooks may have brought it here.
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    pl.replay(trace, ["arc", "lirs"], [100, 10_000])
    assert capsys.readouterr().err == "", "nobody looks"
    monkeypatch.setattr(_progress, "_somebody_looks", lambda: True)
    pl.replay(trace, ["arc", "lirs"], [100, 10_000])
    shown = capsys.readouterr().err
    assert "replaying" in shown and "%" in shown, shown


def test_a_short_call_shows_none(monkeypatch, capsys):
    monkeypatch.setattr(_progress, "_somebody_looks", lambda: True)
    pl.replay(pl.pattern("linear", pages=10, references=100), "lru", 5)
    assert capsys.readouterr().err == ""
