"""Somebody else on this machine, who reads the command line of each process that a test starts, as ``ps`` does."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.security.searching import Secrets, descendants, found_in_command_lines

_LOOK_SECONDS = 0.02


@contextmanager
def onlooker(secrets: Secrets) -> Iterator[set[str]]:
    """Where secrets were seen, as long as the block lasts; those of processes that lived for a moment, too."""
    seen: set[str] = set()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK_SECONDS):
            seen.update(found_in_command_lines(descendants([os.getpid()]), secrets))

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield seen
    finally:
        ended.set()
        looking.join()
