"""Names that are longer than there is room for."""

from __future__ import annotations

_CUT = "…"


def shortened(name: str, width: int) -> str:
    """The name in so many characters, cut in its middle: names begin alike, and end with what tells logs apart."""
    if len(name) <= width:
        return name
    kept = max(width - len(_CUT), 1)
    end = kept // 2
    return f"{name[: kept - end]}{_CUT}{name[len(name) - end :]}"
