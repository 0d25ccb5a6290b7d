"""pagelab: a laboratory for virtual-memory performance.

    import pagelab as pl
    trace = pl.pattern("zipf:0.9", pages=100_000, references=5_000_000)
    pl.mrc(trace, ["lru", "s3-fifo", "opt"])

Results are tables that pandas, polars, DuckDB and pyarrow take (`pandas.DataFrame.from_arrow(table)`); traces are
files, patterns or numpy arrays of page numbers. Long calls release the interpreter's lock, run on every core and end
with Ctrl-C.
"""

from ._pagelab import (
    Notebook,
    PagelabError,
    Shown,
    Table,
    Trace,
    __version__,
    mrc,
    pattern,
    patterns,
    policies,
    read_trace,
    replay,
    wss,
)
from ._run import run
from .lab import Lab, VersionError

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
