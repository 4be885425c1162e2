"""Where the log lines of the library go while a command runs: to stderr, one short line each, from a level on.

A command says by itself what it does and what failed. So only warnings are shown unless told otherwise: what is tried
again, and what would else go unseen.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import keptlog
from keptlog.log.words.harmless import harmless

LEVELS = ("debug", "info", "warning", "error")


class _Lines(logging.Formatter):
    """A name or a path in a line ends no line. What an error brings along, its traceback, has lines of its own."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # logging's name
        return harmless(super().formatMessage(record))


@contextmanager
def log_lines_to_stderr(level: str) -> Iterator[None]:
    """Show lines of this level and above until the block ends."""
    logger = logging.getLogger(keptlog.__name__)
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines("keptlog: %(message)s"))
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    # Spark's client gives the root logger a handler of its own as soon as it warns, and that would show them again.
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before
