"""Whether JSON where only keptlog and Iceberg write is what one of them writes: its name alone does not say so.

Somebody may have put a file there that is called as ours are. A search takes what is ours for free of keys and values,
so it has to be read as whoever needs it reads it. Where every field may be missing, as in a reader's position, anything
at all could be read like that: there it may have nothing else.
"""

from __future__ import annotations

from keptlog.foreign_json import json_value
from keptlog.table.metadata.history import StoredHistory
from keptlog.table.metadata.runs import RememberedChanges
from keptlog.table.metadata.stored_json import is_stored
from keptlog.table.reading.readers import PositionContent
from keptlog.table.removal.drafts import is_draft
from keptlog.table.removal.erasure_register import Register
from keptlog.table.removal.journal import Journal

_KINDS = (Journal, Register, RememberedChanges, StoredHistory)


def is_own_json(content: bytes) -> bool:
    """Whether it is a table's metadata, or one of keptlog's files.

    Raises:
        ValueError: it is no JSON.
    """
    stored = json_value(content)
    if not isinstance(stored, dict):
        return False
    if isinstance(stored.get("format-version"), int) and isinstance(stored.get("location"), str):
        return True
    is_position = is_stored(PositionContent, stored, is_all_known=True)
    return is_position or any(is_stored(each, stored) for each in _KINDS) or is_draft(stored)
