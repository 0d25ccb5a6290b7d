"""`pagelab-cluster`: sweeps, replays and curves by a cluster of Dask's, from the command line."""

import argparse
import sys

from . import PagelabError
from .lab import MACHINE, Lab


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pagelab-cluster",
        description="Sweeps, replays and miss ratio curves by a cluster of Dask's (docs/src/how-to/fleet.md). Without --cluster "
        "a local one is started: a worker of one thread for each core.",
    )
    parser.add_argument("--cluster", metavar="ADDRESS", help="the scheduler, such as tcp://host:8786")
    parser.add_argument("--workers", type=int, metavar="N", help="workers of a local cluster [default: the cores]")
    parser.add_argument("--notebook", default="pagelab.db", metavar="FILE", help="where the runs are kept")
    commands = parser.add_subparsers(dest="command", required=True)
    sweep = commands.add_parser("sweep", help="an experiment with every combination of parameters, a machine each")
    sweep.add_argument("experiment")
    sweep.add_argument("--on", nargs="+", default=["host"], metavar="TARGET")
    sweep.add_argument("--repeat", type=int, default=1, metavar="N")
    sweep.add_argument("--set", nargs="+", action="append", default=[], metavar=("NAME", "VALUE"), help="a parameter and its values")
    replay = commands.add_parser("replay", help="policies at several sizes, each by itself")
    replay.add_argument("trace", nargs="+")
    replay.add_argument("--policy", nargs="+", default=["lru", "opt"])
    replay.add_argument("--size", nargs="+", required=True, help="frames, or 64M, 400p, 10%%")
    replay.add_argument("--page-size", type=int, default=4096, metavar="BYTES")
    mrc = commands.add_parser("mrc", help="the miss ratio of LRU against memory, exact by chunks of time or sampled")
    mrc.add_argument("trace", help="a path or URL that every worker reads; with *, files that follow each other")
    mrc.add_argument("--chunks", type=int, default=16, metavar="N")
    mrc.add_argument("--sample", type=float, metavar="SHARE")
    mrc.add_argument("--shards", type=int, default=32, metavar="N")
    mrc.add_argument("--size", nargs="+", help="[default: 24 from one page to all]")
    mrc.add_argument("--page-size", type=int, default=4096, metavar="BYTES")
    return parser


def _sizes(words: list[str] | None) -> list[int | str] | None:
    return None if words is None else [int(word) if word.isdigit() else word for word in words]


def _perform(arguments: argparse.Namespace, client: object) -> None:
    lab = Lab(client, arguments.notebook)
    if arguments.command == "sweep":
        parameters = {name: values for name, *values in arguments.set}
        print(lab.sweep(arguments.experiment, on=arguments.on, repeat=arguments.repeat, **parameters))
        return
    if arguments.command == "replay":
        found = lab.replay(arguments.trace, arguments.policy, _sizes(arguments.size) or [], page_size=arguments.page_size)
        tables = list(found.values()) if isinstance(found, dict) else [found]
    else:
        by = {"split": "time", "chunks": arguments.chunks}
        if arguments.sample is not None:
            by = {"sample": arguments.sample, "shards": arguments.shards}
        tables = [lab.mrc(arguments.trace, sizes=_sizes(arguments.size), page_size=arguments.page_size, **by)]
    for table in tables:
        print(table)
        print(f"Kept in {arguments.notebook} as {', '.join(lab.notebook.keep(table))}.")


def main() -> None:
    arguments = _parser().parse_args()
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        sys.exit("pagelab-cluster: Dask is not installed (pip install 'pagelab[cluster]')")
    try:
        if arguments.cluster:
            with Client(arguments.cluster) as client:
                _perform(arguments, client)
        else:
            # Of one machine one worker measures; simulations take every core.
            measures = arguments.command == "sweep"
            local = LocalCluster(
                n_workers=1 if measures else arguments.workers,
                threads_per_worker=1,
                dashboard_address=None,
                **({"resources": {MACHINE: 1}} if measures else {}),
            )
            with local, Client(local) as client:
                _perform(arguments, client)
    except (PagelabError, OSError, ValueError) as error:
        sys.exit(f"pagelab-cluster: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
