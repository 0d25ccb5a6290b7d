"""The command line that the wheel carries."""

import os
import sys
from pathlib import Path


def binary() -> Path:
    """The program `pagelab` of this wheel; its tracer lies beside it."""
    return Path(__file__).with_name("_bin") / "pagelab"


def main() -> None:
    """Becomes the program, with the same process id."""
    path = binary()
    try:
        os.execv(path, ["pagelab", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"pagelab: {path}: {error.strerror}; install the wheel again")


if __name__ == "__main__":
    main()
