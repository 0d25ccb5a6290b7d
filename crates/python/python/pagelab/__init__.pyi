from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import IO, Any, Protocol, SupportsIndex, TypeAlias, final, type_check_only

import numpy as np
from numpy.typing import ArrayLike, NDArray

__version__: str
__all__ = [
    "Lab",
    "Notebook",
    "PagelabError",
    "Shown",
    "Table",
    "Trace",
    "VersionError",
    "__version__",
    "mrc",
    "pattern",
    "patterns",
    "policies",
    "read_trace",
    "replay",
    "run",
    "wss",
]

class PagelabError(Exception): ...

class VersionError(PagelabError): ...

@final
class Table:
    @property
    def columns(self) -> list[str]: ...
    @property
    def units(self) -> dict[str, str]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def __getitem__(self, name: str, /) -> list[Any]: ...
    def to_dict(self) -> dict[str, list[Any]]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def _repr_html_(self) -> str: ...

@final
class Trace:
    def __new__(cls, array: ArrayLike, page_size: int = 4096) -> Trace: ...
    @property
    def pages(self) -> int: ...
    @property
    def page_size(self) -> int: ...
    @property
    def described(self) -> str: ...
    @property
    def is_lent(self) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[int]: ...
    def to_numpy(self) -> NDArray[np.uint32]: ...

@final
class Shown:
    @property
    def html(self) -> str: ...
    def to_dict(self) -> Any: ...
    def _repr_html_(self) -> str: ...

@final
class Notebook:
    def __new__(cls, path: str | PathLike[str] = "pagelab.db") -> Notebook: ...
    @property
    def path(self) -> Path: ...
    def runs(self) -> Table: ...
    def observations(self, *names: str) -> Table: ...
    def run(self, name: str = "@1") -> Shown: ...
    def assess(self, *names: str) -> Shown: ...
    def compare(self, *names: str) -> Shown: ...
    def findings(self, *names: str) -> Table: ...
    def keep(self, table: Table, name: str | None = None) -> list[str]: ...
    def import_from(self, path: str | PathLike[str]) -> None: ...

# What a policy written in Python has: its class, called with the frames, is given to `replay` and `mrc`.
@type_check_only
class Policy(Protocol):
    def on_hit(self, page: int, /) -> object: ...
    def on_miss(self, page: int, /) -> int | None: ...

_PolicyLike: TypeAlias = str | Callable[[int], Policy]
_Policies: TypeAlias = _PolicyLike | Iterable[_PolicyLike]
_TraceLike: TypeAlias = Trace | ArrayLike | PathLike[str]
# Frames, or a text such as "64M"; numpy's integers are no `int`.
_Size: TypeAlias = SupportsIndex | str
_Sizes: TypeAlias = _Size | Iterable[_Size] | NDArray[np.integer[Any]]

def pattern(
    name: str, pages: int = 24_576, references: int = 2_000_000, seed: int = 1, page_size: int = 4096
) -> Trace: ...
def patterns() -> Table: ...
def policies() -> Table: ...
def read_trace(
    path: str | PathLike[str] | IO[bytes],
    format: str | None = None,
    page_size: int = 4096,
    columns: str | None = None,
) -> Trace: ...
def replay(
    trace: _TraceLike, policies: _Policies, sizes: _Sizes, threads: int | None = None
) -> Table: ...
def mrc(
    trace: _TraceLike,
    policies: _Policies | None = None,
    sizes: _Sizes | None = None,
    sample: float | None = None,
) -> Table: ...
def wss(trace: _TraceLike, window: int | None = None, step: int | None = None) -> Table: ...
def run(
    experiment: str,
    *,
    on: str | Iterable[str] = "host",
    notebook: str | PathLike[str] = "pagelab.db",
    repeat: int | None = None,
    memory: str | None = None,
    swap: str | None = None,
    name: str | None = None,
    program: Iterable[str] = (),
    **parameters: object,
) -> Shown: ...

class Lab:
    client: Any
    notebook: Notebook
    def __init__(self, client: Any, notebook: str | PathLike[str] = "pagelab.db") -> None: ...
    def sweep(
        self,
        experiment: str,
        *,
        on: str | Iterable[str] = "host",
        repeat: int = 1,
        program: Iterable[str] = (),
        **parameters: object,
    ) -> Shown: ...
    def replay(
        self,
        traces: str | PathLike[str] | Iterable[str | PathLike[str]],
        policies: str | Iterable[str],
        sizes: _Sizes,
        *,
        page_size: int = 4096,
    ) -> Table | dict[str, Table]: ...
    def mrc(
        self,
        trace: str | PathLike[str],
        policy: str = "lru",
        *,
        sizes: _Sizes | None = None,
        split: str | None = None,
        chunks: int = 16,
        sample: float | None = None,
        shards: int = 32,
        page_size: int = 4096,
    ) -> Table: ...
