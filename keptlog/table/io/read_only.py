"""That no file may be changed through a catalog: its home is a copy or was moved, or it was opened to look alone.

It stands among the catalog's properties, which each door to its files has. What may become untrue again is a call,
asked each time: the old place of a moved home may have been made a link since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from keptlog.errors import InvalidConfig

READ_ONLY = "keptlog.read-only"
"""Of a catalog's properties: why no file may be changed through it, or what tells that whenever it is asked.

Tasks take along what is true when they are made.
"""


def require_writable(properties: Iterable[tuple[str, Any]]) -> None:
    """Refuse to change a file where the catalog's properties forbid it.

    Raises:
        InvalidConfig: with the reason.
    """
    why = read_only(properties)
    if why is not None:
        raise InvalidConfig(why)


def read_only(properties: Iterable[tuple[str, Any]]) -> str | None:
    """Why no file may be changed through a catalog of these properties; null if all may be."""
    why: str | Callable[[], str | None] | None = dict(properties).get(READ_ONLY)
    return why() if callable(why) else why
