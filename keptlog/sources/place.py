"""Where the reading of files is, so that whoever refuses a record, the source or the table, can say which one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Place:
    """The record that was read last: in which file, at which line or row of it."""

    file: str = ""
    unit: str = "line"
    number: int = 0
    """Counted from 1; 0 while it is about the file as a whole."""
    share: Callable[[], float] = lambda: 0.0
    """How much of the file has been read, 0 to 1."""

    def __str__(self) -> str:
        return f"{self.file}: {self.unit} {self.number}" if self.number else self.file
