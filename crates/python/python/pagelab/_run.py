"""Performs experiments by the command line of the wheel: it sets limits up, measures, undoes, and keeps the runs."""

import json
import os
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path

from ._command import binary
from ._pagelab import Notebook, PagelabError, Shown

# Seconds in which what was set up is undone after Ctrl-C.
UNDOING = 60.0


def _flags(parameters: dict) -> list[str]:
    words = []
    for name, value in parameters.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        values = value if isinstance(value, (list, tuple)) else [value]
        for one in values:
            words += [flag] if one is True else [flag, str(one)]
    return words


def perform(words: list[str], **environment: str) -> str:
    """What `pagelab WORDS` prints, with these variables set. It ends with this process, and undoes what it set up."""
    environment = {**os.environ, **environment, "PAGELAB_PARENT": str(os.getpid())}
    child = subprocess.Popen(
        [binary(), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        printed, said = child.communicate()
    except BaseException:
        child.send_signal(signal.SIGINT)
        try:
            child.communicate(timeout=UNDOING)
        except subprocess.TimeoutExpired:
            child.terminate()
            child.communicate()
        raise
    if child.returncode == 130:
        raise KeyboardInterrupt
    if child.returncode != 0:
        said = said.strip().removeprefix("error: ")
        raise PagelabError(said or f"pagelab {words[0]} ended with status {child.returncode}")
    return printed


def run(
    experiment: str,
    *,
    on: str | Iterable[str] = "host",
    notebook: str | os.PathLike[str] = "pagelab.db",
    repeat: int | None = None,
    memory: str | None = None,
    swap: str | None = None,
    name: str | None = None,
    program: Iterable[str] = (),
    **parameters: object,
) -> Shown:
    """Performs an experiment and keeps the runs in the notebook, as `pagelab run` does.

    experiment: a name such as "mapanon" (`pagelab experiments` lists them with their parameters).
    on: a target or several: "host", "kernel:PATH", "model:linux-lru".
    repeat: repetitions on each target, in turn (A B B A …).
    memory: the limit, such as "64M" or "none".
    swap: "file", "zram" or "none".
    name: what the runs are called.
    program: of the experiment "command", the program and its arguments.
    parameters: the experiment's own, such as pages=65536, pattern="zipf:0.9".

    Gives the runs: text, `to_dict()`, the report's page in a notebook. Raises PagelabError with the reason where it
    cannot be performed; nothing is left set up then, nor after Ctrl-C, nor when this process is killed.
    """
    targets = [on] if isinstance(on, str) else list(on)
    own = {"repeat": repeat, "memory": memory, "swap": swap, "name": name, "on": targets, **parameters}
    words = ["--notebook", str(Path(notebook)), "run", experiment, *_flags(own), "--json", "--html", "none"]
    program = list(program)
    if program:
        words += ["--", *program]
    result = json.loads(perform(words))["result"]
    names = [one["name"] for one in result["runs"]]
    return Notebook(notebook).assess(*names)
