"""The command line that the wheel carries."""

import os
import sys
from pathlib import Path


def binary() -> Path:
    """The program `pagelab` of this wheel; its tracer lies beside it."""
    return Path(__file__).with_name("_bin") / "pagelab"


def commit() -> str | None:
    """The commit of this wheel, with a digest of what was changed since; None where it is unknown."""
    try:
        return binary().with_name("commit").read_text() or None
    except FileNotFoundError:
        return None


def main() -> None:
    """Becomes the program, with the same process id."""
    path = binary()
    try:
        os.execv(path, ["pagelab", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"pagelab: {path}: {error.strerror}; install the wheel again")


if __name__ == "__main__":
    main()
