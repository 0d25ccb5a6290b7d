"""Progress bars of long calls: tqdm's, where it is installed and somebody looks."""

import sys
import time
from typing import Any

# Seconds before a bar appears.
PATIENCE = 2.0


def _somebody_looks() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class Bar:
    """How far a call is, from 0 to 1."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._began = time.monotonic()
        self._bar: Any = None
        self._lacking = False

    def at(self, fraction: float) -> None:
        """The call is this far."""
        if self._bar is None:
            if self._lacking or time.monotonic() - self._began < PATIENCE or not _somebody_looks():
                return
            try:
                from tqdm.auto import tqdm
            except ImportError:
                self._lacking = True
                return
            self._bar = tqdm(desc=self._name, total=1.0, bar_format="{desc}: {percentage:3.0f}% {bar} {elapsed}<{remaining}")
        self._bar.update(max(0.0, min(fraction, 1.0) - self._bar.n))

    def close(self) -> None:
        """The call is over."""
        if self._bar is not None:
            self._bar.close()
