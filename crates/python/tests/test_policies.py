"""Policies written in Python beside the built-in ones."""

from collections import OrderedDict

import numpy as np
import pytest

import pagelab as pl


class Lru:
    """Least recently used."""

    def __init__(self, frames):
        self.frames = frames
        self.pages = OrderedDict()

    def on_hit(self, page):
        self.pages.move_to_end(page)

    def on_miss(self, page):
        victim = self.pages.popitem(last=False)[0] if len(self.pages) == self.frames else None
        self.pages[page] = None
        return victim


class Fifo(Lru):
    def on_hit(self, page):
        pass


def test_a_plugged_policy_is_the_built_in_one_to_the_last_miss():
    for name in ("zipf:0.9", "drift", "smooth-sin-random"):
        trace = pl.pattern(name, pages=2_000, references=60_000, seed=7)
        sizes = [1, 7, 500, 1_999, 3_000]
        own = pl.replay(trace, [Lru, Fifo], sizes)
        built_in = pl.replay(trace, ["lru", "fifo"], sizes)
        assert own["misses"] == built_in["misses"]
        assert own["policy"] == ["Lru"] * 5 + ["Fifo"] * 5


def test_it_stands_beside_the_built_in_ones_in_a_curve():
    trace = np.arange(3_000, dtype=np.uint32) % 100
    table = pl.mrc(trace, ["lru", Lru, "opt"], sizes=[10, 99, 100])
    assert table["policy"] == ["lru"] * 3 + ["Lru"] * 3 + ["opt"] * 3
    assert table["misses"][:3] == table["misses"][3:6] == [3_000, 3_000, 100]
    assert "Lru" in table._repr_html_()


def test_what_it_raises_comes_out():
    class Broken(Lru):
        def on_hit(self, page):
            raise RuntimeError(f"page {page}")

    with pytest.raises(RuntimeError, match="page 3"):
        pl.replay(np.array([1, 3, 3, 1], dtype=np.uint32), Broken, 2)


def test_a_wrong_victim_is_refused():
    class Nobody(Lru):
        def on_miss(self, page):
            return None

    class Absent(Lru):
        def on_miss(self, page):
            return 77

    trace = np.array([1, 2, 3], dtype=np.uint32)
    with pytest.raises(ValueError, match="named no victim, and none of the 2 frames is free"):
        pl.replay(trace, Nobody, 2)
    with pytest.raises(ValueError, match="named 77, which is not resident"):
        pl.replay(trace, Absent, 2)
    with pytest.raises(ValueError, match="on_hit"):
        pl.replay(trace, [3], 2)
