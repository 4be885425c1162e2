"""Of which table a change event is, and what else a connector writes between the changes of rows.

    {"op": "u", "source": {"db": "shop", "schema": "public", "table": "users"}, …}     shop.public.users
    {"ts_ms": 1}                                                                       a heartbeat
    {"ddl": "ALTER TABLE …", …}                                                        a change of the schema
    {"status": "BEGIN", "id": "571", …}                                                the mark of a transaction

Keys of two tables may be equal, and one of two rows with one key is compacted away. So all events of an append are of
one table, unless somebody says which tables belong together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from keptlog.errors import InvalidRecord

FLAT_DELETED, FLAT_OP = "__deleted", "__op"
"""Of a row that was flattened (``ExtractNewRecordState``) one of these says what happened to it."""
_WILDCARDS = set("*?[")
_PARTS = ("db", "schema", "table")
_FLAT_PARTS = (("__source_db", "__db"), ("__source_schema", "__schema"), ("__source_table", "__table"))
_OF_OTHERS = {
    "Canal": ({"database", "table", "type", "data"}, {"isDdl", "pkNames", "es"}),
    "Maxwell": ({"database", "table", "type", "data"}, {"xid", "commit", "primary_key", "old", "xoffset"}),
    "Oracle GoldenGate": ({"table", "op_type"}, {"op_ts", "current_ts", "pos"}),
}
"""A change's fields as other programs write them: all of the first, and one of the second.

Both Canal and Maxwell have ``old``; what else Canal writes nobody else does.
"""


@dataclass
class TableChoice:
    """Which of the events are taken, and what was left out."""

    pattern: str | None = None
    """Of the table's name, or of its whole name with dots, as a shell has it for files; null for one and the same.

    Without wildcards it is a name, of one table.
    """
    rows_only: bool = False
    """Leave out what is no change of a row, instead of refusing it."""
    left_out: Counter[str] = field(default_factory=Counter)
    _first: str | None = None

    @property
    def leaves_tables_out(self) -> bool:
        """Whether there may be events of tables that are not wanted."""
        return self.pattern not in {None, "*"}

    def takes(self, event: Mapping[str, Any]) -> bool:
        """Whether an event is wanted; what is not is counted.

        Raises:
            InvalidRecord: it is of another table than those before, and nobody said that both are meant.
        """
        if other := no_row(event):
            if not self.rows_only:
                raise InvalidRecord(f"{other} is no change of a row: leave such lines out with --rows-only")
            self.left_out[other] += 1
            return False
        table = table_of(event)
        if table is None:
            return True
        if self.pattern is not None and not any(fnmatchcase(name, self.pattern) for name in _names(table)):
            self.left_out[f"an event of {table}"] += 1
            return False
        if self.pattern is None or not _WILDCARDS & set(self.pattern):
            self._require_one(table)
        return True

    def _require_one(self, table: str) -> None:
        """Of a name without wildcards one table is meant, and several may have it."""
        self._first = self._first or table
        if table == self._first:
            return
        if self.pattern is not None and _is_told_shorter(table, self._first):
            self._first = max(table, self._first, key=len)
            return
        met = f"the event is of table {table}, and those before are of {self._first}"
        told = met if self.pattern is None else f"{self.pattern!r} means both {self._first} and {table}"
        both = "*" if self.pattern is None else f"*.{self.pattern}"
        raise InvalidRecord(
            f"{told}: equal keys of two tables would be one; take one of them (--table {table}), or both if they "
            f"belong together (--table '{both}')"
        )


def table_of(event: Mapping[str, Any]) -> str | None:
    """The whole name of the table that an event is of; null if it does not say."""
    source = event.get("source")
    if isinstance(source, Mapping):
        parts = [source.get(name) or (source.get("collection") if name == "table" else None) for name in _PARTS]
    else:
        parts = [next((event[name] for name in names if event.get(name)), None) for names in _FLAT_PARTS]
    return ".".join(str(part) for part in parts if part) if parts[-1] else None


def is_flat(event: Mapping[str, Any]) -> bool:
    """Whether an event is a row that was flattened, with what happened to it in fields of its own."""
    return FLAT_OP in event or FLAT_DELETED in event


def no_row(event: Mapping[str, Any]) -> str | None:
    """What an event is that tells of no row; null if it may tell of one.

    The columns of a flattened row are its own, whatever they are called.
    """
    if is_flat(event):
        return None
    if event.keys() == {"ts_ms"}:
        return "a heartbeat"
    if "op" in event:
        return "a message" if event["op"] == "m" else None
    if "ddl" in event or "tableChanges" in event:
        return "a change of the schema"
    return "the mark of a transaction" if event.get("status") in {"BEGIN", "END"} and "id" in event else None


def foreign_form(event: Mapping[str, Any]) -> str | None:
    """The program whose form of a change this is, if it is not Debezium's."""
    for name, (all_of, some_of) in _OF_OTHERS.items():
        if all_of <= event.keys() and some_of & event.keys():
            return name
    return None


def _names(table: str) -> list[str]:
    """``shop.public.users`` is meant by ``users`` and ``public.users`` too."""
    parts = table.split(".")
    return [".".join(parts[start:]) for start in range(len(parts))]


def _is_told_shorter(table: str, other: str) -> bool:
    """Whether one name is the end of the other: a row that was flattened may tell no database and no schema."""
    return table in _names(other) or other in _names(table)
