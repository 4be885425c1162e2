"""Runs code that talks to catalog or storage, and turns its failures into the one error that callers know.

What fails in which way is known by ``keptlog.table.waiting.reach``, which imports PyIceberg and SQLAlchemy for it.
Whoever reads files of a disk needs neither as long as nothing fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from keptlog.errors import KeptlogError

HELD = "another process holds its database: wait until it is done, or end it (fuser names it), then try again"
"""What is said of a catalog that somebody else keeps locked."""


@contextmanager
def reaching(what: str) -> Iterator[None]:
    """Run code that talks to catalog or storage; ``what`` begins the error's message.

    Raises:
        StorageUnavailable: it can't be reached.
    """
    try:
        yield
    except KeptlogError:
        raise
    except Exception as error:
        from keptlog.table.waiting.reach import OUT_OF_REACH, unavailable  # noqa: PLC0415  # only once something has failed

        if isinstance(error, OUT_OF_REACH):
            raise unavailable(what, error) from error
        raise


def is_out_of_reach(error: BaseException) -> bool:
    """Whether a file, a database or a service did not do what was asked, or did not answer."""
    from keptlog.table.waiting.reach import OUT_OF_REACH  # noqa: PLC0415  # as above

    return isinstance(error, OUT_OF_REACH)


def one_line(error: BaseException) -> str:
    """The first line of an error, with its kind."""
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def why_not_landed(topic: str, error: Exception) -> KeptlogError:
    """The error as callers know it; one that nobody has thought of says which topic it was.

    Whoever commits to many topics catches everything, a mark of what has failed included: what no commit to a topic
    survives is met by each of them.
    """
    if isinstance(error, KeptlogError):
        return error
    text = f"topic {topic}: its commit stopped at {one_line(error)}; the next one tries again; report it if it stays"
    return KeptlogError(text)
