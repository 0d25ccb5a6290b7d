"""Traces in and tables out, against the command line and against plain Python."""

import copy
import json
import os
import pickle
import signal
import struct
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


def test_a_trace_may_be_any_list_of_page_numbers(array):
    pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    wanted = pl.replay(array, "lru", 50)["misses"]
    numbers = array.tolist()
    for one in (numbers, tuple(numbers), pandas.Series(array), polars.Series(array), pyarrow.array(numbers), array.reshape(-1)):
        assert pl.replay(one, "lru", 50)["misses"] == wanted, type(one)
        assert len(pl.Trace(one)) == len(array)
    assert list(pl.Trace(range(3))) == [0, 1, 2] and len(pl.Trace([])) == 0
    for wrong in ([1.5], ["a"], [[1, 2]], pandas.Series([0.5]), b"12", 7, None, {1, 2}, object()):
        with pytest.raises((TypeError, ValueError)):
            pl.Trace(wrong)
    with pytest.raises(TypeError, match="read_trace takes a file"):
        pl.Trace("trace.txt")


def test_sizes_may_be_any_list_of_numbers(array):
    pandas = pytest.importorskip("pandas")
    wanted = pl.replay(array, "lru", [10, 20]).to_dict()
    for sizes in (np.array([10, 20]), np.array([10, 20], dtype=np.uint16), pandas.Series([10, 20]), (10, 20), range(10, 21, 10)):
        assert pl.replay(array, "lru", sizes).to_dict() == wanted
    for one in (np.int64(10), np.array([10]), "10p"):
        assert pl.replay(array, "lru", one)["misses"] == wanted["misses"][:1]


def test_policies_have_the_names_that_were_asked_for(array, tmp_path):
    pandas = pytest.importorskip("pandas")
    names = ["s3-fifo", "s3-fifo:small=0.2", "model:2q", "lru-k:2", "w-tinylfu"]
    for table in (pl.replay(array, names, 50), pl.mrc(array, names, 50), pl.mrc(array, names, 50, sample=0.5)):
        assert table["policy"] == names
    frame = pandas.DataFrame.from_arrow(pl.replay(array, names, 50))
    assert len(frame[frame.policy == "s3-fifo"]) == 1
    notebook = pl.Notebook(tmp_path / "runs.db")
    notebook.keep(pl.replay(array, names, 50), "one")
    assert notebook.runs()["target"] == [
        "model:s3-fifo:small=0.1,ghost=0.9,promote=2,fill=main",
        "model:s3-fifo:small=0.2,ghost=0.9,promote=2,fill=main",
        "model:2q:kin=0.25,kout=0.5",
        "model:lru-k:k=2,history=all",
        "model:w-tinylfu:window=0.01",
    ]


def test_traces_and_tables_are_pickled(array, tmp_path):
    for trace in (pl.Trace(array), pl.pattern("zipf:0.9", pages=100, references=1_000), pl.Trace([])):
        again = pickle.loads(pickle.dumps(trace))
        assert (list(again), again.pages, again.page_size) == (list(trace), trace.pages, trace.page_size)
        assert again.described == trace.described and repr(again) == repr(trace)
    tables = [
        pl.replay(array, ["lru", "ws:100"], [10, 20]),
        pl.mrc(array, ["lru", "opt"], [10, 20], sample=0.5),
        pl.policies(),
        pl.wss(array),
    ]
    for table in tables:
        again = copy.deepcopy(pickle.loads(pickle.dumps(table)))
        assert (again.to_dict(), again.units, repr(again)) == (table.to_dict(), table.units, repr(table))
        assert again._repr_html_() == table._repr_html_()
    book = pl.Notebook(tmp_path / "runs.db")
    assert book.keep(pickle.loads(pickle.dumps(tables[0])), "curve") == ["curve-1", "curve-2"]
    with pytest.raises(ValueError, match="not below 2"):
        pl.Trace._of(np.array([0, 2], dtype=np.uint32), 2, 4096, "wrong")


def test_tables_and_traces_are_iterated(array):
    table = pl.replay(array, ["lru", "opt"], [10, 20])
    rows = list(table)
    assert len(rows) == len(table) == 4
    assert {name: [row[name] for row in rows] for name in table.columns} == table.to_dict()
    assert list(pl.Trace(array)) == array.tolist() and list(pl.pattern("linear", 3, 5)) == [0, 1, 2, 0, 1]


def test_a_missing_column_names_those_there_are(array):
    with pytest.raises(KeyError, match="no column 'miss'; must be one of policy, frames, references, misses"):
        pl.replay(array, "lru", 10)["miss"]


def test_formats_may_be_spelt_as_other_tools_do(tmp_path):
    file = tmp_path / "trace.bin"
    records = [(1, 7, 1, -1), (2, 8, 1, 3), (3, 8, 1, -1)]
    file.write_bytes(b"".join(struct.pack("<IQIq", *record) for record in records))
    for name in ("oracle-general", "oracleGeneral", "OracleGeneral"):
        assert list(pl.read_trace(file, format=name)) == [0, 1, 1]
    with pytest.raises(ValueError, match="unknown trace format 'oracle'"):
        pl.read_trace(file, format="oracle")


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
