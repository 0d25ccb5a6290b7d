"""A fleet of machines behind Dask.distributed: experiments swept over machines, simulations divided among cores.

    from distributed import Client
    import pagelab as pl
    lab = pl.Lab(Client("tcp://scheduler:8786"), notebook="fleet.db")
    lab.sweep("mapanon", on=["host", "model:lru"], pages=[10_000, 20_000], repeat=2)
    lab.mrc("big.zst", policy="lru", split="time", chunks=16)

How the work divides, and what is moved, is in docs/src/how-to/fleet.md. Every result is the one that one machine gives.
"""

import glob
import itertools
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any, NamedTuple

from . import _command, _pagelab, _remote, _run
from ._pagelab import Notebook, PagelabError, Shown, Table

# What a worker that measures has one of: `dask worker --nthreads 1 --resources machine=1`.
MACHINE = "machine"
# Where tasks say that they have begun, so that one that was begun again shows.
BEGUN = "pagelab-begun"
# Seconds that the scheduler may take to answer.
PATIENCE = 30
# Times that a task may be begun again after its worker was lost.
RETRIES = 3

# What this worker process read last: (path, page size), (fingerprint, Trace).
_held: tuple[tuple[str, int], tuple[_remote.Fingerprint, Any]] | None = None


class VersionError(PagelabError):
    """A worker has another version of pagelab."""


def _list(value: object) -> list:
    """One value, or what a list, an array or a Series of them holds."""
    return [value] if isinstance(value, (str, os.PathLike)) or not isinstance(value, Iterable) else list(value)


class _Version(NamedTuple):
    """What is installed: two builds of one release may differ."""

    release: str
    commit: str | None

    def __str__(self) -> str:
        return f"{self.release} ({self.commit or 'commit unknown'})"

    def is_as(self, other: object) -> bool:
        """Whether both are the same, as far as that is known; workers before 0.3 tell a text."""
        if not isinstance(other, _Version):
            return False
        commits = {self.commit, other.commit} - {None}
        return self.release == other.release and len(commits) < 2


def _version() -> _Version:
    return _Version(_pagelab.__version__, _command.commit())


def _check(version: _Version) -> None:
    """Refuses work from a client of another version: workers may join at any time."""
    own = _version()
    if not own.is_as(version):
        raise VersionError(
            f"the worker on {socket.gethostname()} has pagelab {own}, the client {version}: install the same wheel on both"
        )


def _unchanged(path: str, read: Callable[[], Any]) -> tuple[_remote.Fingerprint, Any]:
    """What `read` makes of a trace, and the fingerprint of what it was made of."""
    before = _remote.fingerprint(path)
    result = read()
    if _remote.fingerprint(path) != before:
        raise PagelabError(f"{path}: changed while it was read")
    return before, result


def _trace(path: str, page_size: int) -> tuple[_remote.Fingerprint, Any]:
    """The trace; a worker holds one, the last, until its file changes."""
    global _held
    if _held is None or _held[0] != (path, page_size) or _held[1][0] != _remote.fingerprint(path):
        _held = None
        read = _unchanged(path, lambda: _pagelab.read_trace(_remote.source(path), page_size=page_size))
        _held = ((path, page_size), read)
    return _held[1]


# The work of one task; that of a trace comes with the digest of the content that it was made of.


def _replay(version: _Version, path: str, page_size: int, policy: str, frames: int | str) -> tuple[str, dict]:
    _check(version)
    fingerprint, trace = _trace(path, page_size)
    table = _pagelab.replay(trace, policy, frames, threads=1)
    return fingerprint.content, {name: values[0] for name, values in table.to_dict().items()} | {"pages": trace.pages}


def _chunk(version: _Version, path: str, page_size: int, number: int, count: int) -> tuple[str, Any]:
    _check(version)
    fingerprint, piece = _unchanged(path, lambda: _pagelab.chunk(_remote.source(path), page_size, number, count))
    return fingerprint.content, piece


def _sample(version: _Version, path: str, page_size: int, rate: float, shards: int) -> list:
    _check(version)
    return _unchanged(path, lambda: _pagelab.sample(_remote.source(path), page_size, rate, shards))[1]


def _shard(version: _Version, parts: list, rate: float, shards: int, number: int) -> Any:
    _check(version)
    return _pagelab.shard([part[number] for part in parts], rate, shards, number)


def _begun(worker: Any, key: str) -> int:
    """Tells the scheduler that a task begins, and waits until it knows, for the worker may be lost at any moment after; the
    number of this attempt, from 1."""
    from distributed import get_client

    mark = os.urandom(8).hex()
    worker.log_event(BEGUN, {"key": key, "mark": mark})
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        marks = [one["mark"] for _, one in get_client().get_events(BEGUN) if one["key"] == key]
        if mark in marks:
            return marks.index(mark) + 1
        time.sleep(0.01)
    raise PagelabError(f"the scheduler did not answer {worker.address} for {PATIENCE} s")


def _perform(version: _Version, words: list[str], behind: list[str], key: str) -> tuple[bytes, str | None]:
    """Performs an experiment on this machine; the notebook's bytes, and why it failed if it did."""
    from distributed import get_worker

    _check(version)
    worker = get_worker()
    attempt = _begun(worker, key)
    fleet = f"host={socket.gethostname()}\nworker={worker.address}\nattempt={attempt}"
    # Where the next worker on this machine takes away what a killed one has left.
    with tempfile.TemporaryDirectory(prefix="pagelab-", dir=worker.local_directory) as folder:
        notebook = Path(folder) / "pagelab.db"
        failed = None
        try:
            _run.perform(
                ["--notebook", str(notebook), "run", *words, "--json", "--html", "none", *behind], PAGELAB_FLEET=fleet
            )
        except PagelabError as error:
            failed = f"{worker.name} on {socket.gethostname()}: {error}"
        return (notebook.read_bytes() if notebook.exists() else b""), failed


class _Contents:
    """The contents of traces that tasks read: results of two of one trace are not put together."""

    def __init__(self) -> None:
        self._read: dict[str, str] = {}

    def add(self, path: str, content: str) -> None:
        if self._read.setdefault(path, content) != content:
            raise PagelabError(
                f"{path}: tasks read different contents; it was rewritten meanwhile, or machines have different files under this path"
            )


class Lab:
    """A client of Dask's and the notebook that keeps what its workers find.

    client: `distributed.Client`. Simulations take any worker; measurements only those that were started with
        `--nthreads 1 --resources machine=1`, one to a machine.
    notebook: the file, on the client.

    Raises VersionError where a worker has another version of pagelab.
    """

    def __init__(self, client: Any, notebook: str | os.PathLike[str] = "pagelab.db") -> None:
        self.client = client
        self.notebook = Notebook(notebook)
        self._path = Path(notebook)
        self._names = itertools.count(1)
        self._check_versions()

    def _check_versions(self) -> None:
        try:
            versions = self.client.run(_version)
        except Exception as error:
            raise PagelabError(f"a worker has no pagelab: {error}") from error
        own = _version()
        others = {address: version for address, version in versions.items() if not own.is_as(version)}
        if others:
            which = ", ".join(f"{address} has {version}" for address, version in sorted(others.items()))
            raise VersionError(f"the client has pagelab {own}; {which}: install the same wheel everywhere")

    # The work.

    def sweep(
        self,
        experiment: str,
        *,
        on: str | Iterable[str] = "host",
        repeat: int = 1,
        program: Iterable[str] = (),
        **parameters: object,
    ) -> Shown:
        """Performs an experiment with every combination of the parameters, each `repeat` times on every target.

        experiment, on, program, parameters: as of `pl.run`; a list of parameter values is swept over.

        A machine performs one at a time. The record of each has the host, its kernel and conditions, the worker and
        the attempt (`fleet.attempt` above 1: the worker that had begun it was lost). Runs of unlike machines are
        compared with a caveat that says so. Gives the runs as `pl.run` does. What cannot be performed raises
        PagelabError with the worker's name, after everything else was performed and kept.
        """
        names = list(parameters)
        combinations = list(itertools.product(*(_list(parameters[name]) for name in names)))
        jobs = []
        for target, values in itertools.product(_list(on), combinations):
            own = dict(zip(names, values, strict=True))
            words = [experiment, "--on", target, "--repeat", str(repeat), *_run._flags(own)]
            jobs.append((words, ["--", *program] if program else []))
        if not any(MACHINE in worker.get("resources", {}) for worker in self.client.scheduler_info()["workers"].values()):
            raise PagelabError(
                "no worker may measure: start one to a machine with --nthreads 1 --resources machine=1"
            )
        futures = []
        for words, behind in jobs:
            key = f"pagelab-sweep-{os.urandom(8).hex()}"
            futures.append(
                self.client.submit(
                    _perform, _version(), words, behind, key, key=key, resources={MACHINE: 1}, pure=False, retries=RETRIES
                )
            )
        before = set(self._runs())
        failures: list[str] = []

        def keep(result: tuple[bytes, str | None]) -> None:
            content, failed = result
            if content:
                with tempfile.TemporaryDirectory(prefix="pagelab-") as folder:
                    part = Path(folder) / "part.db"
                    part.write_bytes(content)
                    self.notebook.import_from(part)
            if failed:
                failures.append(failed)

        self._gather(futures, lambda _, result: keep(result), f"are in {self._path}")
        made = [name for name in self._runs() if name not in before]
        if failures:
            raise PagelabError("; ".join(sorted(set(failures))))
        return self.notebook.assess(*made)

    def _runs(self) -> list[str]:
        return self.notebook.runs()["run"] if self._path.exists() else []

    def replay(
        self,
        traces: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        policies: str | Iterable[str],
        sizes: int | str | Iterable[int | str],
        *,
        page_size: int = 4096,
    ) -> Table | dict[str, Table]:
        """Replays traces on policies at several sizes, each policy and size by itself on any worker.

        A worker reads a trace once and holds one at a time; OPT's index of next uses is made once for it. Gives what
        `pl.replay` gives; of several traces a dict of them by path.
        """
        paths = [os.fspath(trace) for trace in _list(traces)]
        jobs = list(itertools.product(paths, _list(policies), _list(sizes)))
        futures = [
            self.client.submit(_replay, _version(), path, page_size, policy, frames, pure=False, retries=RETRIES)
            for path, policy, frames in jobs
        ]
        rows: list[dict] = [{}] * len(jobs)

        contents = _Contents()

        def put(number: int, result: tuple[str, dict]) -> None:
            content, rows[number] = result
            contents.add(jobs[number][0], content)

        self._gather(futures, put)
        tables = {}
        for path in paths:
            of_it = [row for (of, _, _), row in zip(jobs, rows, strict=True) if of == path]
            columns = {name: [row[name] for row in of_it] for name in of_it[0]}
            tables[path] = _pagelab.replayed(path, page_size, of_it[0]["pages"], columns)
        return tables if len(paths) > 1 else tables[paths[0]]

    def mrc(
        self,
        trace: str | os.PathLike[str],
        policy: str = "lru",
        *,
        sizes: int | str | Iterable[int | str] | None = None,
        split: str | None = None,
        chunks: int = 16,
        sample: float | None = None,
        shards: int = 32,
        page_size: int = 4096,
    ) -> Table:
        """The miss ratio against memory.

        trace: a path or URL that every worker can read; with `*`, files that follow each other in time.
        policy: with split or sample "lru".
        split: "time": exact LRU, each chunk of time on any worker, put together on the client (PARDA).
        sample: a share of the pages, whose hash classes (`shards` of them) are measured apart.

        Without split and sample each size is replayed by itself.
        """
        path = os.fspath(trace)
        files = self._files(path)
        if split not in (None, "time"):
            raise ValueError(f"split={split!r}: must be 'time'")
        if (split or sample is not None) and policy != "lru":
            raise ValueError("split and sample are LRU's: replay other policies at several sizes")
        if split and sample is not None:
            raise ValueError("split gives the exact curve: leave sample out, or split")
        if split:
            return self._by_time(path, files, chunks, sizes, page_size)
        if sample is not None:
            return self._by_hash(path, files, sample, shards, sizes, page_size)
        if len(files) > 1:
            raise ValueError("several files need split='time' or sample")
        if sizes is None:
            raise ValueError("sizes: name them, or split='time' for every size at once")
        table = self.replay(path, policy, sizes, page_size=page_size)
        assert isinstance(table, Table)
        return table

    def _files(self, path: str) -> list[str]:
        if "*" not in path:
            return [path]
        if _remote.is_url(path):
            import fsspec

            def find() -> list[str]:
                system, name = fsspec.core.url_to_fs(path)
                return [system.unstrip_protocol(found) for found in system.glob(name)]

            files = _remote.told(path, find)
        else:
            files = glob.glob(path)
        if not files:
            raise FileNotFoundError(f"no file is called {path}")
        return sorted(files)

    def _by_time(self, path: str, files: list[str], chunks: int, sizes: object, page_size: int) -> Table:
        each = max(1, -(-chunks // len(files)))
        jobs = [(file, number) for file in files for number in range(each)]
        futures = [
            self.client.submit(_chunk, _version(), file, page_size, number, each, pure=False, retries=RETRIES)
            for file, number in jobs
        ]
        merge = _pagelab.Merge()
        waiting: dict[int, Any] = {}
        contents = _Contents()

        def take(number: int, result: tuple[str, Any]) -> None:
            content, waiting[number] = result
            contents.add(jobs[number][0], content)
            while merge.parts in waiting:
                merge.take(waiting.pop(merge.parts))

        self._gather(futures, take)
        return merge.curve(path, page_size, sizes)

    def _by_hash(self, path: str, files: list[str], rate: float, shards: int, sizes: object, page_size: int) -> Table:
        version = _version()
        parts = [
            self.client.submit(_sample, version, file, page_size, rate, shards, pure=False, retries=RETRIES)
            for file in files
        ]
        futures = [
            self.client.submit(_shard, version, parts, rate, shards, number, pure=False, retries=RETRIES)
            for number in range(shards)
        ]
        found: list[Any] = [None] * shards

        def put(number: int, shard: Any) -> None:
            found[number] = shard

        self._gather(futures, put)
        return _pagelab.sampled_curve(found, path, page_size, sizes)

    def _gather(self, futures: list, take: Callable[[int, Any], None], kept: str = "are not kept: call again") -> None:
        """Gives each result to `take` as it comes, with its number, and lets go of it; what fails ends the rest.

        When the scheduler is lost the error says what becomes of the finished parts: they are `kept`.
        """
        from distributed import as_completed

        numbers = {future.key: number for number, future in enumerate(futures)}
        done = 0

        def lost() -> PagelabError:
            return PagelabError(f"the scheduler was lost; {done} of {len(futures)} parts were finished and {kept}")

        try:
            for future in as_completed(futures):
                if future.cancelled():
                    raise lost()
                # "lost" is a result whose worker died before it was fetched: `result` waits until
                # it is computed again.
                try:
                    result = future.result()
                except (OSError, CancelledError) as error:
                    # A task may raise an OSError of its own.
                    if future.status == "error":
                        raise
                    raise lost() from error
                take(numbers[future.key], result)
                futures[numbers[future.key]] = None
                future.release()
                done += 1
        finally:
            left = [future for future in futures if future is not None]
            if left and self.client.status == "running":
                self.client.cancel(left)
