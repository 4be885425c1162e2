"""Tags of runs whose values may be longer than a database takes: in pieces.

    keptlog/failed       users-0,users-1, … ,users-1
    keptlog/failed.1     99,users-200

Dagster has an index over the tags of runs, and PostgreSQL refuses an entry of 2,704 bytes. Names of a few hundred logs
are longer. A run with such a tag could not be made, and one that fails could not say what of.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import count, takewhile

_PIECE_BYTES = 2_000
"""What an index takes, but for the tag's own name and some room."""


def as_tags(name: str, text: str) -> dict[str, str]:
    """The text as one tag, or as several; it has ASCII characters alone, as names of logs have, and JSON."""
    pieces = [text[start : start + _PIECE_BYTES] for start in range(0, len(text), _PIECE_BYTES)] or [""]
    return {_piece_name(name, number): piece for number, piece in enumerate(pieces)}


def tag_text(tags: Mapping[str, str], name: str) -> str | None:
    """The whole text; null if the run has no such tag."""
    pieces = _pieces(tags, name)
    return "".join(tags[piece] for piece in pieces) if pieces else None


def names_in_brief(names: Iterable[str]) -> list[str]:
    """The names of tags, those of one text as one, such as ``keptlog/failed*2``: a text may have hundreds of pieces."""
    left, brief = set(names), list[str]()
    for name in sorted(left):
        if name in left:
            pieces = _pieces(left, name)
            left.difference_update(pieces)
            brief.append(f"{name}*{len(pieces)}" if len(pieces) > 1 else name)
    return brief


def names_in_full(tags: Container[str], brief: Iterable[str]) -> Iterator[str]:
    """The same names again, of those that a run has; somebody may have typed anything."""
    for each in brief:
        name, _, most = each.partition("*")
        pieces = _pieces(tags, name)
        yield from pieces[: int(most)] if most.isdecimal() else pieces[:1]


def _pieces(tags: Container[str], name: str) -> list[str]:
    """The names of those tags that have a text between them."""
    return list(takewhile(lambda piece: piece in tags, (_piece_name(name, number) for number in count())))


def _piece_name(name: str, number: int) -> str:
    return f"{name}.{number}" if number else name
