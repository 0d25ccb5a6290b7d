"""A fleet of real worker processes: equal to one machine, and whole after a worker or the scheduler is killed."""

import contextlib
import functools
import http.server
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import ClassVar

import numpy as np
import pytest

import pagelab as pl

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, resources={"machine": 1}) as local:
        with distributed.Client(local) as client:
            yield local, client


@pytest.fixture
def lab(cluster, tmp_path):
    return pl.Lab(cluster[1], notebook=tmp_path / "fleet.db")


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A trace of uint64 page numbers in a file."""
    array = pl.pattern("zipf:0.8", pages=20_000, references=600_000).to_numpy()
    path = tmp_path_factory.mktemp("traces") / "trace.u64"
    (array.astype(np.uint64) * 3 + 1_000_000_007).tofile(path)
    return path


def test_exact_lru_by_chunks_of_time_is_the_sequential_curve(lab, trace):
    sizes = [1, 10, 500, 5_000, 19_000]
    wanted = pl.mrc(trace, sizes=sizes).to_dict()
    for chunks in (1, random.randint(2, 9), 16):
        assert lab.mrc(trace, policy="lru", split="time", chunks=chunks, sizes=sizes).to_dict() == wanted


def test_files_that_follow_each_other_are_one_trace(lab, trace, tmp_path):
    pages = np.fromfile(trace, dtype=np.uint64)
    for number, part in enumerate(np.split(pages, [100_000, 450_000])):
        part.tofile(tmp_path / f"part-{number}.u64")
    found = lab.mrc(str(tmp_path / "part-*.u64"), split="time", chunks=6, sizes=[100, 5_000])
    assert found["misses"] == pl.mrc(trace, sizes=[100, 5_000])["misses"]


def test_a_trace_is_read_through_fsspec(lab, trace):
    fsspec = pytest.importorskip("fsspec")
    found = lab.mrc(f"file://{trace}", split="time", chunks=3, sizes=[100, 5_000])
    assert found["misses"] == pl.mrc(trace, sizes=[100, 5_000])["misses"]
    assert lab.replay(f"file://{trace}", ["lru", "opt"], [100]).to_dict() == pl.replay(trace, ["lru", "opt"], [100]).to_dict()
    with fsspec.open(f"file://{trace}") as file:
        assert file.read(8) == trace.read_bytes()[:8]


class Ranges(http.server.SimpleHTTPRequestHandler):
    """Serves files, and ranges of their bytes; notes what was asked for."""

    asked: ClassVar[list[tuple[int, int]]] = []

    def do_GET(self):
        path = self.translate_path(self.path)
        begin, end = self.headers.get("Range", f"bytes=0-{os.path.getsize(path) - 1}").removeprefix("bytes=").split("-")
        with open(path, "rb") as file:
            file.seek(int(begin))
            content = file.read(int(end) + 1 - int(begin))
        self.asked.append((int(begin), len(content)))
        self.send_response(206 if "Range" in self.headers else 200)
        self.send_header("Content-Range", f"bytes {begin}-{int(begin) + len(content) - 1}/{os.path.getsize(path)}")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def end_headers(self):
        self.send_header("Accept-Ranges", "bytes")
        super().end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(handler, folder):
    """The folder behind HTTP; the server's address."""
    handler = functools.partial(handler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def test_chunks_are_fetched_by_ranges_of_bytes(lab, tmp_path):
    pytest.importorskip("aiohttp")
    pages = pl.pattern("zipf:0.8", pages=20_000, references=4_000_000).to_numpy()
    file = tmp_path / "trace.u64"
    pages.astype(np.uint64).tofile(file)
    with served(Ranges, tmp_path) as address:
        found = lab.mrc(f"{address}/trace.u64", split="time", chunks=4, sizes=[100, 5_000])
    assert found["misses"] == pl.mrc(file, sizes=[100, 5_000])["misses"]
    # Each chunk's own bytes and the file's head; a request is of a few MiB.
    length = file.stat().st_size
    assert sum(asked for _, asked in Ranges.asked) < 3 * length, Ranges.asked
    assert any(begin >= length // 2 for begin, _ in Ranges.asked)


class Whole(http.server.SimpleHTTPRequestHandler):
    """Serves whole files, whatever range is asked for."""

    def log_message(self, *_):
        pass


class Silent(Whole):
    """The same, and does not tell their length."""

    protocol_version = "HTTP/1.0"

    def do_HEAD(self):
        self.send_error(405)

    def do_GET(self):
        with open(self.translate_path(self.path), "rb") as file:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(file.read())


class Refusing(Whole):
    """Answers with the status that the path asks for."""

    def do_GET(self):
        self.send_error(int(self.path.strip("/")))

    do_HEAD = do_GET


def calls(lab, url):
    """What reads a trace in the ways there are."""
    return [
        lambda: lab.replay(url, "lru", [100]),
        lambda: lab.mrc(url, split="time", chunks=3, sizes=[100]),
        lambda: lab.mrc(url, sample=0.5, shards=2, sizes=[100]),
    ]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(404, FileNotFoundError), (403, PermissionError), (401, PermissionError), (500, pl.PagelabError)],
)
def test_what_a_server_answers_is_said(lab, tmp_path, status, kind):
    pytest.importorskip("aiohttp")
    with served(Refusing, tmp_path) as address:
        for call in calls(lab, f"{address}/{status}"):
            with pytest.raises(kind, match=f"{address}/{status}: HTTP {status}") as raised:
                call()
            assert raised.type is kind


def test_a_server_that_is_not_there_is_said(lab):
    pytest.importorskip("aiohttp")
    for call in calls(lab, "http://127.0.0.1:1/trace"):
        with pytest.raises(ConnectionError, match="http://127.0.0.1:1/trace: Cannot connect to host 127.0.0.1:1"):
            call()


@pytest.mark.parametrize("handler", [Whole, Silent])
@pytest.mark.parametrize("name", ["trace.u64", "trace.zst"])
def test_a_server_without_ranges_is_said(lab, tmp_path, handler, name):
    pytest.importorskip("aiohttp")
    pyarrow = pytest.importorskip("pyarrow")
    # More than fsspec asks for at a time, also compressed.
    content = np.random.default_rng(1).integers(0, 1 << 28, 3_000_000).astype(np.uint64).tobytes()
    with pyarrow.output_stream(str(tmp_path / name), compression="zstd" if name.endswith("zst") else None) as file:
        file.write(content)
    with served(handler, tmp_path) as address:
        for call in calls(lab, f"{address}/{name}"):
            with pytest.raises(pl.PagelabError, match=f"{address}/{name}: the server sends no parts of files"):
                call()


def test_an_error_of_the_system_on_a_worker_is_no_lost_scheduler(lab, tmp_path):
    for call in calls(lab, str(tmp_path)):
        with pytest.raises(IsADirectoryError):
            call()
    futures = [lab.client.submit(os.listdir, "/no-such-folder", pure=False), lab.client.submit(os.kill, 1 << 22, 0, pure=False)]
    with pytest.raises(OSError, match="No such"):
        lab._gather(futures, lambda number, result: None)


def rewrite(path, seed, keep):
    """Another trace of the same length in its place; with `keep` its times and inode stay."""
    before = os.stat(path)
    pages = pl.pattern("zipf:0.8", pages=20_000, references=600_000, seed=seed).to_numpy().astype(np.uint64)
    if keep:
        with open(path, "r+b") as file:
            file.write(pages.tobytes())
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        after = os.stat(path)
        assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
    else:
        pages.tofile(f"{path}.new")
        os.replace(f"{path}.new", path)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("scheme", ["", "file://", "http://"])
def test_a_trace_that_was_rewritten_is_read_again(lab, tmp_path, scheme, keep):
    path = tmp_path / "trace.u64"
    path.write_bytes(b"")
    policies, sizes = ["lru", "opt"], [100, 2_000]
    with served(Ranges, tmp_path) if scheme == "http://" else contextlib.nullcontext("file://" + str(tmp_path)) as address:
        url = f"{address}/trace.u64" if scheme else str(path)
        path.write_bytes(bytes(8 * 600_000))
        for seed in range(1, 4):
            rewrite(path, seed, keep)
            wanted = pl.replay(str(path), policies, sizes).to_dict()
            assert lab.replay(url, policies, sizes).to_dict() == wanted
            assert lab.mrc(url, split="time", chunks=3, sizes=sizes)["misses"] == wanted["misses"][:2]


def test_a_trace_that_did_not_change_is_read_once(trace):
    from pagelab import lab

    fingerprint, first = lab._trace(str(trace), 4096)
    assert lab._trace(str(trace), 4096) == (fingerprint, first) and lab._trace(str(trace), 4096)[1] is first
    assert lab._trace(str(trace), 8192)[1] is not first


def test_a_trace_that_changes_meanwhile_is_refused(trace, tmp_path, lab):
    from pagelab import lab as work

    path = tmp_path / "trace.u64"
    path.write_bytes(trace.read_bytes())
    with pytest.raises(pl.PagelabError, match="changed while it was read"):
        work._unchanged(str(path), lambda: rewrite(path, 9, True))
    contents = work._Contents()
    contents.add("a", "1")
    contents.add("b", "2")
    contents.add("a", "1")
    with pytest.raises(pl.PagelabError, match="a: tasks read different contents"):
        contents.add("a", "2")


def test_replays_are_those_of_one_machine(lab, trace):
    policies, sizes = ["lru", "opt", "sieve", "ws:1000"], [100, 2_000, "50%"]
    assert lab.replay(trace, policies, sizes).to_dict() == pl.replay(trace, policies, sizes).to_dict()


def test_hash_classes_add_and_are_near_the_curve(lab, trace):
    exact = pl.mrc(trace, sizes=[4_000, 15_000])
    found = lab.mrc(trace, sample=0.5, shards=4, sizes=[4_000, 15_000, 10])
    assert found["miss_ratio"][2] is None and found["misses"] == [None] * 3
    for whole, part in zip(exact["miss_ratio"], found["miss_ratio"], strict=False):
        assert abs(whole - part) < 0.02
    again = lab.mrc(trace, sample=0.5, shards=4, sizes=[4_000, 15_000, 10])
    assert again.to_dict() == found.to_dict()


def test_what_travels_may_lie_anywhere(trace):
    """A message's buffers begin where they begin."""
    import pickle

    from pagelab import _pagelab

    def sent(value):
        buffers = []
        packed = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        apart = [memoryview(b"x" + buffer.raw().tobytes())[1:] for buffer in buffers]
        assert apart, "arrays travel beside the pickle"
        return pickle.loads(packed, buffers=apart)

    piece = _pagelab.chunk(str(trace), 4096, 0, 3)
    assert (sent(piece).references, sent(piece).pages) == (piece.references, piece.pages)
    parts = sent(_pagelab.sample(str(trace), 4096, 0.5, 2))
    assert not parts[0][1].flags.aligned
    sent(_pagelab.shard([parts[0]], 0.5, 2, 0))


def test_a_sweep_keeps_hosts_and_conditions(lab):
    shown = lab.sweep("mapanon", on=["model:lru", "model:opt"], pages=[300, 600], memory="100p", references=5_000, repeat=2)
    runs = lab.notebook.runs()
    assert len(runs) == 4 and runs["done"] == [2] * 4 and len(shown.to_dict()["runs"]) == 4
    seen = lab.notebook.observations().to_dict()
    entry = {name: text for name, text in zip(seen["name"], seen["text"], strict=True) if name.startswith("fleet.")}
    assert entry["fleet.host"] == os.uname().nodename and entry["fleet.attempt"] == "1"
    assert entry["fleet.worker"].startswith("tcp://")


def test_what_a_worker_cannot_do_is_said_with_its_name(lab):
    with pytest.raises(pl.PagelabError, match=f"on {os.uname().nodename}: .*no-such-image"):
        lab.sweep("mapanon", on=["model:lru", "kernel:/no-such-image"], pages=100, references=100)
    assert lab.notebook.runs()["target"] == ["model:lru"], "the others are kept"


def has(release, commit):
    """Has a worker tell that it is of this release and commit."""
    from pagelab import lab

    lab._version = lambda: lab._Version(release, commit)


def test_a_worker_of_another_version_is_refused(cluster, tmp_path):
    from pagelab import lab

    client = cluster[1]
    address = sorted(client.scheduler_info()["workers"])[0]
    own = lab._version()
    try:
        for release, commit in [("0.0.9", own.commit), *([(own.release, "1234567")] if own.commit else [])]:
            client.run(has, release, commit, workers=[address])
            with pytest.raises(pl.VersionError, match=re.escape(f"{address} has {release} ({commit})")):
                pl.Lab(client, notebook=tmp_path / "fleet.db")
        client.run(has, own.release, None, workers=[address])
        pl.Lab(client, notebook=tmp_path / "fleet.db")
    finally:
        client.run(has, *own, workers=[address])


def test_a_worker_refuses_a_client_of_another_version(monkeypatch, trace):
    from pagelab import lab

    assert lab._version().release == pl.__version__
    own, other = lab._Version(pl.__version__, "7654321"), lab._Version(pl.__version__, "1234567")
    monkeypatch.setattr(lab, "_version", lambda: own)
    with pytest.raises(pl.VersionError, match=re.escape(f"has pagelab {own}, the client {other}")):
        lab._replay(other, str(trace), 4096, "lru", 100)
    assert lab._replay(lab._Version(pl.__version__, None), str(trace), 4096, "lru", 100)[1]["policy"] == "lru"


def _begun_again(client, address, killed):
    """Waits until both workers are there, and the one at this address, if it is, is another process."""
    deadline = time.monotonic() + 60
    while client.run(os.getpid).get(address) == killed or len(client.scheduler_info()["workers"]) < 2:
        assert time.monotonic() < deadline, "the worker was begun again"
        time.sleep(0.1)


def test_a_killed_worker_costs_time_and_nothing_else(lab, trace, cluster):
    client = cluster[1]
    client.wait_for_workers(2, timeout=60)
    pids = client.run(os.getpid)
    victim = sorted(pids)[0]
    policies, sizes = ["lirs", "arc", "opt"], [10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000]
    wanted = pl.replay(trace, policies, sizes).to_dict()
    killed = []

    def kill():
        deadline = time.monotonic() + 60
        while not client.processing().get(victim) and time.monotonic() < deadline:
            time.sleep(0.005)
        os.kill(pids[victim], signal.SIGKILL)
        killed.append(time.monotonic())

    thread = threading.Thread(target=kill)
    thread.start()
    found = lab.replay(trace, policies, sizes).to_dict()
    returned = time.monotonic()
    thread.join()
    assert found == wanted and killed[0] < returned, "the worker died in the middle"
    _begun_again(client, victim, pids[victim])


def test_results_that_die_with_their_worker_are_computed_again(lab, cluster):
    client = cluster[1]
    client.wait_for_workers(2, timeout=60)
    pids = client.run(os.getpid)
    victim = sorted(pids)[0]
    futures = [
        client.submit(int, number, pure=False, workers=[victim], allow_other_workers=True, retries=3) for number in range(4)
    ]
    distributed.wait(futures)
    later, taken = futures[1:], {}

    def take(number, result):
        if not taken:
            os.kill(pids[victim], signal.SIGKILL)
            deadline = time.monotonic() + 60
            while all(future.status == "finished" for future in later) and time.monotonic() < deadline:
                time.sleep(0.001)
        taken[number] = result

    lab._gather(futures, take)
    assert taken == {number: number for number in range(4)}
    _begun_again(client, victim, pids[victim])


def test_a_measurement_that_is_begun_again_says_so_and_leaves_nothing(lab, cluster):
    client = cluster[1]
    client.wait_for_workers(2, timeout=60)

    def folders():
        return set(client.run(lambda dask_worker: dask_worker.local_directory).values())

    def temporary():
        return set(pathlib.Path(tempfile.gettempdir()).glob("pagelab-*"))

    before = folders(), temporary()
    found = {}
    # Like nobody else's on this machine.
    seconds = f"4.{os.getpid()}"

    def sweep():
        found["shown"] = lab.sweep("command", memory="none", program=["sleep", seconds])

    thread = threading.Thread(target=sweep)
    thread.start()
    deadline = time.monotonic() + 60
    while not (running := subprocess.run(["pgrep", "-fx", f"sleep {seconds}"], capture_output=True, text=True).stdout.split()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(_parent_worker(int(running[0])), signal.SIGKILL)
    while os.path.exists(f"/proc/{running[0]}") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{running[0]}"), "the program died with the worker"
    thread.join(timeout=90)
    seen = lab.notebook.observations().to_dict()
    attempts = [text for name, text in zip(seen["name"], seen["text"], strict=True) if name == "fleet.attempt"]
    assert attempts == ["2"] and lab.notebook.runs()["done"] == [1]
    left = [folder for folder in before[0] - folders() if os.path.exists(folder)]
    assert not left and not temporary() - before[1], "the notebook that the killed worker wrote"


def _parent_worker(pid):
    """The process of Python's among the ancestors."""
    while True:
        with open(f"/proc/{pid}/stat") as file:
            pid = int(file.read().rsplit(")", 1)[1].split()[1])
        with open(f"/proc/{pid}/comm") as file:
            if file.read().startswith("python"):
                return pid


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler of its own with a worker that may measure, and its process."""
    file = str(tmp_path / "scheduler.json")
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", file],
        stderr=subprocess.DEVNULL,
    )
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", file, "--resources", "machine=1",
         "--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "10"],
        stderr=subprocess.DEVNULL,
    )
    try:
        with distributed.Client(scheduler_file=file, timeout=60) as client:
            client.wait_for_workers(1, timeout=60)
            yield client, scheduler
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


def test_a_lost_scheduler_is_said(scheduler, tmp_path, trace):
    client, process = scheduler
    lab = pl.Lab(client, notebook=tmp_path / "fleet.db")
    threading.Timer(0.5, process.kill).start()
    with pytest.raises(pl.PagelabError, match="the scheduler was lost; [0-9]+ of 300 parts were finished and are not kept"):
        lab.replay(trace, ["lirs", "arc", "lru-k"], list(range(1_000, 11_000, 100)))


def test_runs_of_a_sweep_outlive_the_scheduler(scheduler, tmp_path):
    client, process = scheduler
    lab = pl.Lab(client, notebook=tmp_path / "fleet.db")

    def kill():
        deadline = time.monotonic() + 60
        while not lab.notebook.path.exists() or len(lab.notebook.runs()) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.kill()

    thread = threading.Thread(target=kill)
    thread.start()
    said = "the scheduler was lost; ([0-9]+) of 200 parts were finished and are in .*fleet.db"
    with pytest.raises(pl.PagelabError, match=said) as raised:
        lab.sweep("mapanon", on="model:lru", pages=list(range(300, 500)), memory="100p", references=5_000)
    thread.join()
    assert len(lab.notebook.runs()) == int(re.search(said, str(raised.value))[1]) >= 2


def test_the_command_starts_a_cluster_of_its_own(trace, tmp_path):
    command = [sys.executable, "-m", "pagelab.cluster", "--workers", "2", "--notebook", str(tmp_path / "own.db")]
    command += ["mrc", str(trace), "--chunks", "4", "--size", "100", "5000"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    assert f"{pl.mrc(trace, sizes=100)['misses'][0]:,}" in printed and "Kept in" in printed
