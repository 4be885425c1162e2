"""Tags of runs whose values may be longer than a database takes: in pieces.

    keptlog/failed       users-0,users-1, … ,users-1
    keptlog/failed.1     99,users-200

Dagster has an index over the tags of runs, and PostgreSQL refuses an entry of 2,704 bytes. Names of a few hundred logs
are longer. A run with such a tag could not be made, and one that fails could not say what of.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

_PIECE_BYTES = 2_000
"""What an index takes, but for the tag's own name and some room."""


def as_tags(name: str, text: str) -> dict[str, str]:
    """The text as one tag, or as several; it has ASCII characters alone, as names of logs have, and JSON."""
    pieces = [text[start : start + _PIECE_BYTES] for start in range(0, len(text), _PIECE_BYTES)] or [""]
    return {_piece_name(name, number): piece for number, piece in enumerate(pieces)}


def tag_text(tags: Mapping[str, str], name: str) -> str | None:
    """The whole text; null if the run has no such tag."""
    if name not in tags:
        return None
    pieces = []
    for number in count():
        piece = tags.get(_piece_name(name, number))
        if piece is None:
            break
        pieces.append(piece)
    return "".join(pieces)


def _piece_name(name: str, number: int) -> str:
    return f"{name}.{number}" if number else name
