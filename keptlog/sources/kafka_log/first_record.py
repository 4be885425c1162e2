"""Whether a batch's first record can be one, seen from the few bytes that hold its lengths.

The search for the next good batch asks this before it makes a checksum of all that may be the batch. So it asks no more
than any reader does, Kafka's too: lengths fit, and a record ends where it says. Attributes may be anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from keptlog.sources.kafka_log.open_file import OpenFile

_LONGEST_VARINT = 10


class _NoRecord(Exception):
    """What is read reaches beyond its end."""


@dataclass
class _Cursor:
    file: OpenFile
    position: int
    end: int

    def number(self) -> int:
        """The varint here."""
        folded = shift = 0
        for byte in self.file.peek(self.position, min(_LONGEST_VARINT, self.end - self.position)):
            self.position += 1
            folded |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (folded >> 1) ^ -(folded & 1)
        raise _NoRecord

    def skip(self, length: int) -> None:
        """Go on behind so many bytes; a length below 0 is null."""
        self.position += max(0, length)
        if self.position > self.end:
            raise _NoRecord


def may_be_first_record(file: OpenFile, start: int, end: int, *, is_only: bool) -> bool:
    """Whether a record can begin here, in a batch that ends at ``end``; headers are not looked into."""
    try:
        cursor = _Cursor(file, start, end)
        length = cursor.number()
        record_end = cursor.position + length
        if length < 0 or record_end > end or (is_only and record_end < end):
            return False
        cursor.end = record_end
        cursor.skip(1)  # the attributes
        cursor.number()  # of timestamp and offset: that it fits the batch is seen where records are read
        cursor.number()
        cursor.skip(cursor.number())
        cursor.skip(cursor.number())
        headers = cursor.number()
    except _NoRecord:
        return False
    left = record_end - cursor.position
    return 2 * headers <= left if headers > 0 else headers == left == 0
