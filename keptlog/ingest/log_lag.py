"""Where one topic-partition stands, here and at its source."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from keptlog.log.source import SourceLog


class LogLag(NamedTuple):
    """As of one time."""

    stopped: str | None
    """Why it must not be gone on with; null if it may."""
    position: int | None
    """The next offset to be read; null if none ever was."""
    log: SourceLog | None
    """Null where it is not there."""
    lag: int | None
    """How many offsets are yet to be read; null where none may be, whatever lies between here and the end there."""
