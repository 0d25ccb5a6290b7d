"""A fleet of real worker processes: equal to one machine, and whole after a worker or the scheduler is killed."""

import functools
import http.server
import os
import pathlib
import random
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


def test_chunks_are_fetched_by_ranges_of_bytes(lab, tmp_path):
    pytest.importorskip("aiohttp")
    pages = pl.pattern("zipf:0.8", pages=20_000, references=4_000_000).to_numpy()
    file = tmp_path / "trace.u64"
    pages.astype(np.uint64).tofile(file)
    handler = functools.partial(Ranges, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            found = lab.mrc(f"http://127.0.0.1:{server.server_port}/trace.u64", split="time", chunks=4, sizes=[100, 5_000])
        finally:
            server.shutdown()
    assert found["misses"] == pl.mrc(file, sizes=[100, 5_000])["misses"]
    # Each chunk's own bytes and the file's head; a request is of a few MiB.
    length = file.stat().st_size
    assert sum(asked for _, asked in Ranges.asked) < 3 * length, Ranges.asked
    assert any(begin >= length // 2 for begin, _ in Ranges.asked)


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


def test_a_worker_of_another_version_is_refused(cluster, tmp_path):
    def spoil(version):
        import pagelab._pagelab as compiled

        before, compiled.__version__ = compiled.__version__, version
        return before

    address = sorted(cluster[1].scheduler_info()["workers"])[0]
    before = cluster[1].run(spoil, "0.0.9", workers=[address])[address]
    try:
        with pytest.raises(pl.VersionError, match=f"{address} has 0.0.9"):
            pl.Lab(cluster[1], notebook=tmp_path / "fleet.db")
    finally:
        cluster[1].run(spoil, before, workers=[address])


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


def test_a_lost_scheduler_is_said(tmp_path, trace):
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard",
         "--scheduler-file", str(tmp_path / "scheduler.json")],
        stderr=subprocess.DEVNULL,
    )
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(tmp_path / "scheduler.json"),
         "--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "10"],
        stderr=subprocess.DEVNULL,
    )
    try:
        with distributed.Client(scheduler_file=str(tmp_path / "scheduler.json"), timeout=60) as client:
            client.wait_for_workers(1, timeout=60)
            lab = pl.Lab(client, notebook=tmp_path / "fleet.db")

            def kill():
                time.sleep(0.5)
                scheduler.kill()

            threading.Thread(target=kill).start()
            with pytest.raises(pl.PagelabError, match="the scheduler was lost; [0-9]+ of 300 parts were finished"):
                lab.replay(trace, ["lirs", "arc", "lru-k"], list(range(1_000, 11_000, 100)))
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


def test_the_command_starts_a_cluster_of_its_own(trace, tmp_path):
    command = [sys.executable, "-m", "pagelab.cluster", "--workers", "2", "--notebook", str(tmp_path / "own.db")]
    command += ["mrc", str(trace), "--chunks", "4", "--size", "100", "5000"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    assert f"{pl.mrc(trace, sizes=100)['misses'][0]:,}" in printed and "Kept in" in printed
