"""Traces in and tables out, against the command line and against plain Python."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import pagelab as pl


def lru_misses(references, frames):
    """LRU, written down."""
    resident, misses = {}, 0
    for page in references:
        if page in resident:
            del resident[page]
        else:
            misses += 1
            if len(resident) == frames:
                del resident[next(iter(resident))]
        resident[page] = True
    return misses


@pytest.fixture(scope="module")
def array():
    generator = np.random.default_rng(1)
    return (generator.zipf(1.3, 30_000) % 900).astype(np.uint32)


def test_lru_is_what_plain_python_counts(array):
    sizes = [1, 10, 100, 500]
    wanted = [lru_misses(array.tolist(), size) for size in sizes]
    assert pl.replay(array, "lru", sizes)["misses"] == wanted
    assert pl.mrc(array, sizes=sizes)["misses"] == wanted


def test_the_command_line_counts_the_same(array, tmp_path):
    file = tmp_path / "trace.txt"
    np.savetxt(file, array, "%d")
    command = [sys.executable, "-m", "pagelab._command", "replay", str(file), "--on", "lru", "--on", "opt", "--on", "2q"]
    command += ["--memory", "30p,300p", "--json", "--no-keep"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    wanted = [json.loads(line)["misses"] for line in printed.splitlines()]
    assert len(wanted) == 6
    for trace in (array, array.astype(np.int64), str(file), pl.read_trace(file), pl.Trace(array)):
        assert pl.replay(trace, ["lru", "opt", "2q"], [30, "300p"])["misses"] == wanted


def test_a_dense_array_is_not_copied(array):
    trace = pl.Trace(array)
    assert trace.is_lent and np.shares_memory(trace.to_numpy(), array)
    assert trace.pages == array.max() + 1 and len(trace) == len(array)


def test_other_arrays_are_numbered_by_first_reference():
    names = np.array([7_000_000_000, 5, 7_000_000_000, 9], dtype=np.uint64)
    assert pl.Trace(names).to_numpy().tolist() == [0, 1, 0, 2]
    assert pl.Trace(names[::2]).to_numpy().tolist() == [0, 0]
    for dtype in (np.uint32, np.uint64):
        apart = np.frombuffer(b"x" + np.array([3, 1, 3], dtype=dtype).tobytes(), dtype=dtype, offset=1)
        assert not apart.flags.aligned and len(pl.Trace(apart)) == 3
    sparse = np.array([4_000_000_000, 1, 4_000_000_000], dtype=np.uint32)
    assert not pl.Trace(sparse).is_lent and pl.Trace(sparse).pages == 2
    assert len(pl.Trace(np.zeros(0, dtype=np.uint32))) == 0
    for wrong in (np.zeros(3), np.zeros((2, 2), dtype=np.uint32), np.zeros(3, dtype=bool)):
        with pytest.raises((TypeError, ValueError)):
            pl.Trace(wrong)


def test_a_working_set_is_what_its_window_holds(array):
    table = pl.wss(array[:500], window=50, step=25)
    wanted = [len(set(array[max(0, made - 50) : made].tolist())) for made in table["reference"]]
    assert table["pages"] == wanted and table["reference"][-1] == 500


def test_a_sample_is_near_the_curve():
    trace = pl.pattern("zipf:0.8", pages=50_000, references=500_000)
    exact = pl.mrc(trace, ["lru", "sieve"], sizes=[5_000, 20_000])
    sampled = pl.mrc(trace, ["lru", "sieve"], sizes=[5_000, 20_000], sample=0.2)
    for whole, part, error in zip(exact["miss_ratio"], sampled["miss_ratio"], sampled["standard_error"], strict=True):
        assert abs(whole - part) < 0.05 and 0 < error < 0.05
    assert pl.mrc(trace, sizes=10, sample=0.01)["miss_ratio"] == [None]


def test_wrong_values_say_what_is_wanted(array, tmp_path):
    for wrong, words in [
        (lambda: pl.replay(array, "lrux", 5), "did you mean 'lru'"),
        (lambda: pl.replay(array, "lru", 0), "0 frames"),
        (lambda: pl.replay(array, "lru", "5q"), "percentage"),
        (lambda: pl.mrc(array, sample=2), "must be between 0.0000001 and 1"),
        (lambda: pl.pattern("zipff"), "unknown pattern"),
        (lambda: pl.wss(array, window=0), "at least 1"),
    ]:
        with pytest.raises(ValueError, match=words):
            wrong()
    with pytest.raises(FileNotFoundError):
        pl.read_trace(tmp_path / "none")
    (tmp_path / "torn.zst").write_bytes(b"\x28\xb5\x2f\xfd torn")
    with pytest.raises(pl.PagelabError, match="torn"):
        pl.read_trace(tmp_path / "torn.zst")


def test_data_frames_take_a_table(array):
    import duckdb
    import pandas
    import polars
    import pyarrow

    table = results = pl.replay(array, ["lru", "opt", "ws:100"], [10, 20])
    arrow = pyarrow.table(table)
    assert arrow.schema.field("frames").metadata == {b"unit": b"pages"}
    wanted = table.to_dict()
    assert arrow.to_pydict() == wanted
    assert polars.DataFrame(table).to_dict(as_series=False) == wanted
    assert pandas.DataFrame.from_arrow(table)["misses"].tolist() == wanted["misses"]
    assert duckdb.sql("select misses from results").fetchall() == [(misses,) for misses in wanted["misses"]]
    assert table.units["frames"] == "pages" and wanted["mean_resident"][:4] == [None] * 4


def test_other_threads_run_meanwhile():
    trace = pl.pattern("uniform", pages=300_000, references=3_000_000)
    counted, done = 0, threading.Event()

    def work():
        pl.replay(trace, ["lru", "arc", "lirs", "2q"], [1_000, 100_000])
        done.set()

    threading.Thread(target=work).start()
    while not done.wait(0.001):
        counted += 1
    assert counted > 20


@pytest.mark.parametrize(
    ("prepare", "call"),
    [
        (
            'trace = pl.pattern("uniform", pages=2_000_000, references=20_000_000)',
            'pl.replay(trace, ["lirs", "arc", "lru-k", "2q"], [1_000, 500_000, 1_000_000])',
        ),
        ("", 'pl.pattern("zipf:0.9", pages=20_000_000, references=200_000_000)'),
        ("", 'pl.pattern("smooth-sin-random", pages=1_000_000, references=400_000_000)'),
    ],
)
def test_ctrl_c_ends_a_long_call(prepare, call):
    program = f"""
import pagelab as pl
{prepare}
print("begun", flush=True)
{call}
print("ended", flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "begun\n"
    time.sleep(0.5)
    os.kill(child.pid, signal.SIGINT)
    printed, said = child.communicate(timeout=120)
    assert child.returncode == -signal.SIGINT and "KeyboardInterrupt" in said and printed == ""


def test_a_pattern_tells_how_far_it_is(monkeypatch):
    from pagelab import _progress

    told = []
    monkeypatch.setattr(_progress.Bar, "at", lambda _, fraction: told.append(fraction))
    pl.pattern("zipf:0.9", pages=1_000_000, references=20_000_000)
    assert len(told) > 3 and told[-1] > told[0]


def test_the_package_carries_the_command_line():
    script = [sys.executable, "-m", "pagelab._command"]
    printed = subprocess.run([*script, "--version"], check=True, capture_output=True, text=True).stdout
    assert printed.split()[:2] == ["pagelab", pl.__version__]
    wrong = subprocess.run([*script, "no-such-command"], capture_output=True, text=True)
    assert wrong.returncode == 2


def test_a_table_is_shown():
    table = pl.replay(pl.pattern("linear", pages=10, references=100), "lru", [5, 10])
    assert "miss_ratio" in repr(table) and "<iframe" in table._repr_html_()
    assert "<td>linear</td>" in pl.patterns()._repr_html_()
    assert len(pl.patterns()) > 5 and "s3-fifo" in pl.policies()["policy"]
