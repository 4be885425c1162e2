"""Runs code that talks to catalog or storage, and turns its failures into the one error that callers know.

What fails in which way is known by ``keptlog.table.waiting.reach``, which imports PyIceberg and SQLAlchemy for it.
Whoever reads files of a disk needs neither as long as nothing fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from keptlog.errors import KeptlogError

Seen = TypeVar("Seen")
What = TypeVar("What")

HELD = "another process holds its database: wait until it is done, or end it (fuser names it), then try again"
"""What is said of a catalog that somebody else keeps locked."""
HALF_DONE = "any command of a user who may write there mends it; if the disk is mounted read-only, mount it for writing"
"""What is said of one that a writer has died in, and that this user can't bring back to its last commit."""


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
    """Whether a file, a database or a service did not do what was asked, or did not answer.

    One that is packed, and whose content does not fit its checksum or its first bytes, was read: Python calls it so.
    """
    from gzip import BadGzipFile  # noqa: PLC0415  # as above

    from keptlog.table.waiting.reach import OUT_OF_REACH  # noqa: PLC0415  # as above

    return isinstance(error, OUT_OF_REACH) and not isinstance(error, BadGzipFile)


def one_line(error: BaseException) -> str:
    """The first line of an error, with its kind, or what it tells people of itself."""
    in_words: str | None = getattr(getattr(error, "orig", None) or error, "in_words", None)
    if in_words:
        return in_words
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def why_not_landed(topic: str, error: Exception) -> KeptlogError:
    """The error as callers know it; one that nobody has thought of says which topic it was.

    Whoever commits to many topics catches everything, a mark of what has failed included: what no commit to a topic
    survives is met by each of them.
    """
    return _of_topic(error, f"topic {topic}: its commit", "the next one tries again; ")


def why_not_purged(topic: str, error: Exception) -> KeptlogError:
    """The same of a purge."""
    return _of_topic(error, f"topic {topic}: its purge", "the next one goes on; ")


def apart(topic: str, look: Callable[[], Seen]) -> Seen | KeptlogError:
    """What a look at a topic gives, or why it gives nothing: what is wrong with it is nothing to the others.

    Whoever looks at many topics looks so: one strange table of 300 would end the look at all in a traceback.
    """
    try:
        return look()
    except Exception as error:  # noqa: BLE001  # see above
        return why_unseen(topic, error)


def parted(found: Mapping[What, Seen | KeptlogError]) -> tuple[dict[What, Seen], dict[What, KeptlogError]]:
    """What looks that were made apart have given, and why the others gave nothing; both in their order."""
    seen = {what: each for what, each in found.items() if not isinstance(each, KeptlogError)}
    return seen, {what: each for what, each in found.items() if isinstance(each, KeptlogError)}


def why_unseen(topic: str, error: Exception) -> KeptlogError:
    """The error as callers know it, of somebody who only looks."""
    if isinstance(error, KeptlogError):
        return error
    if is_out_of_reach(error):
        from keptlog.table.waiting.reach import unavailable  # noqa: PLC0415  # as above

        return unavailable(f"topic {topic} can't be read", error)
    return _of_topic(error, f"topic {topic}: the look at it")


def _of_topic(error: Exception, what: str, then: str = "") -> KeptlogError:
    if isinstance(error, KeptlogError):
        return error
    told = KeptlogError(f"{what} stopped at {one_line(error)}; {then}report it if it stays")
    told.__cause__ = error
    return told
