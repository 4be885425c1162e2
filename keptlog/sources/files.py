"""Records from files of several formats, read one after the other as if they were one.

    users.parquet, changes.jsonl.gz, -     ->     records, in this order

Whether all of them are taken or none is up to whoever takes them. What is here beside the records is the place of the
last one, for messages, and how much of all bytes has been read, for those who wait.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from keptlog.errors import InvalidConfig, InvalidRecord
from keptlog.log.record import NewRecord
from keptlog.log.words.counted import counted
from keptlog.log.words.iso_time import iso_time
from keptlog.sources.change_tables import TableChoice
from keptlog.sources.debezium import ChangeEvents
from keptlog.sources.folder_files import files_in
from keptlog.sources.formats import Format, format_of
from keptlog.sources.json_lines import from_json
from keptlog.sources.line_files import NO_EVENTS, PIPED_PARQUET, SAY_PARQUET, lines_of
from keptlog.sources.place import Place
from keptlog.sources.unavailable import Placeholders

if TYPE_CHECKING:
    import pyarrow as pa

    from keptlog.sources.parquet import ParquetRows

STDIN = "-"
REPORT_EVERY = 100_000
_T = TypeVar("_T")
_SECONDS = range(10**8, 10**10)
"""Taken for milliseconds these are days of 1970; as seconds they are 1973 to 2286."""
_FINER_THAN_MS = 10**14
"""From here on it is the year 5138 and later; microseconds were so large in 1973 already."""
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are to be read."""

    now_ms: int
    """The timestamp of records that have none."""
    format: Format | None = None
    """Of all files; null means that their names tell, and that others hold JSON lines."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Parquet: field of a record to the name of its column."""
    key_fields: tuple[str, ...] = ()
    """Debezium: the columns of the key, for events that come without."""
    tables: str | None = None
    """Debezium: a pattern of the tables whose events are taken, the others being left out; null for one table."""
    rows_only: bool = False
    """Debezium: leave out heartbeats and what else is no change of a row, instead of refusing them."""
    accept_unavailable: bool = False
    """Debezium: take rows that lack a large value, because that did not change, with its placeholder."""
    placeholders: tuple[str, ...] = ()
    """Debezium: what else than its default stands for such a value (the connector's unavailable.value.placeholder)."""
    partition: int | None = None
    """Of records that name none."""


@dataclass
class FileSet:
    """Files, and where the reading of them is. It is read once."""

    paths: Sequence[str]
    reading: Reading
    report: Callable[[FileSet], None] = lambda _files: None
    """Called every ``REPORT_EVERY`` records."""
    place: Place = field(default_factory=Place)
    count: int = 0
    """Records read so far."""
    left_out: Counter[str] = field(default_factory=Counter)
    """What was not wanted, by what it was."""
    lacking: Counter[str] = field(default_factory=Counter)
    """How many rows lack the value of a column, by the column."""
    _bytes_before: int = 0
    _bytes_here: Callable[[], float] = field(default=lambda: 0.0)

    @property
    def share_read(self) -> float | None:
        """How much of all bytes has been read, 0 to 1; null where nobody knows how much there is."""
        if not all(_has_size(path) for path in self.paths):
            return None
        total_bytes = sum(Path(path).stat().st_size for path in self.paths)
        return min((self._bytes_before + self._bytes_here()) / max(total_bytes, 1), 1.0)

    def records(self) -> Iterator[NewRecord]:
        """All records, file by file.

        Raises:
            InvalidConfig: Parquet was to come from standard input, or a placeholder is none.
            InvalidRecord: what is wrong with the record at ``place``, or with the file.
        """
        parse = self._parser()
        odd = _OddTimes()
        for path in self.paths:
            records = self._rows(path).records(self.place) if self.is_parquet(path) else self._lines(path, parse)
            for record in self._reading_of(path, records):
                self._count(1)
                if record.timestamp_ms in _SECONDS or record.timestamp_ms >= _FINER_THAN_MS:
                    odd.add(1, record.timestamp_ms)
                has_partition = record.partition is not None or self.reading.partition is None
                yield record if has_partition else replace(record, partition=self.reading.partition)
        if self.lacking:
            told = ", ".join(f"{name} in {counted(count, 'row')}" for name, count in sorted(self.lacking.items()))
            _logger.warning("values that did not change are not there, and a clean removes the rows before: %s", told)
        odd.tell(self.count)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows as batches of ``parquet.ROWS``, for those that keep their offsets; ``place`` is before the batch.

        Raises:
            InvalidConfig: a file is not Parquet.
            InvalidRecord: what is wrong with the row at ``place``, or with the file.
        """
        for path in self.paths:
            if not self.is_parquet(path):
                raise InvalidConfig(f"{path}: only rows of Parquet files keep offsets: leave out --column offset=…")
        odd = _OddTimes()
        for path in self.paths:
            for batch in self._reading_of(path, self._rows(path).batches(self.place)):
                self._count(batch.num_rows)
                times_ms = batch.column("timestamp").to_numpy()
                is_seconds = (times_ms >= _SECONDS.start) & (times_ms < _SECONDS.stop)
                found = times_ms[is_seconds | (times_ms >= _FINER_THAN_MS)]
                if len(found):
                    odd.add(len(found), int(found[0]))
                yield batch
        odd.tell(self.count)

    def is_parquet(self, path: str) -> bool:
        """Whether a file is read as Parquet."""
        return (self.reading.format or format_of(path)) is Format.PARQUET

    def _count(self, more: int) -> None:
        before, self.count = self.count, self.count + more
        if before // REPORT_EVERY < self.count // REPORT_EVERY:
            self.report(self)

    def _rows(self, path: str) -> ParquetRows:
        if path == STDIN:
            raise InvalidConfig("Parquet can't be read from standard input, its end comes first: name a file")
        from keptlog.sources.parquet import ParquetRows  # noqa: PLC0415  # it imports Arrow, and lines need none

        return ParquetRows(path, self.reading.columns, self.reading.now_ms)

    def _parser(self) -> Callable[[bytes], Sequence[NewRecord]]:
        reading = self.reading
        if reading.format is Format.DEBEZIUM:
            choice = TableChoice(reading.tables, reading.rows_only, self.left_out)
            lacking = self.lacking if reading.accept_unavailable else None
            placeholders = Placeholders(reading.placeholders)
            return ChangeEvents(reading.key_fields, reading.now_ms, choice, lacking, placeholders).records
        return lambda line: (from_json(line, now_ms=reading.now_ms),)

    def _reading_of(self, path: str, content: Iterator[_T]) -> Iterator[_T]:
        """What is read of one file, with ``place`` and the share going along."""
        size_bytes = Path(path).stat().st_size if _has_size(path) else 0
        self.place.file, self.place.number, self.place.share = path, 0, lambda: 0.0
        self._bytes_here = lambda: self.place.share() * size_bytes
        try:
            yield from content
        except InvalidRecord as error:
            raise error.reworded(f"{error}; nothing was appended") from None
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidRecord(f"it can't be read further ({error}); nothing was appended") from None
        self._bytes_before, self._bytes_here = self._bytes_before + size_bytes, lambda: 0.0

    def _lines(self, path: str, parse: Callable[[bytes], Sequence[NewRecord]]) -> Iterator[NewRecord]:
        """The records of each line that is not blank."""
        self.place.unit = "line"
        with ExitStack() as opened:
            raw = sys.stdin.buffer if path == STDIN else opened.enter_context(Path(path).open("rb"))
            if _has_size(path):
                size_bytes = max(Path(path).stat().st_size, 1)
                self.place.share = lambda: raw.tell() / size_bytes
            opened.enter_context(_not_cut_off(raw))
            is_debezium = self.reading.format is Format.DEBEZIUM
            if_parquet = NO_EVENTS if is_debezium else SAY_PARQUET if _has_size(path) else PIPED_PARQUET
            lines = lines_of(raw, if_parquet)
            for self.place.number, line in enumerate(lines, start=1):
                if line.strip():
                    yield from parse(line)


@dataclass
class _OddTimes:
    """Timestamps that are not likely to be milliseconds."""

    count: int = 0
    first_ms: int = 0

    def add(self, count: int, first_ms: int) -> None:
        self.count, self.first_ms = self.count + count, self.first_ms or first_ms

    def tell(self, of: int) -> None:
        """Warn, if there are any."""
        if self.count:
            text = "timestamps are milliseconds, and those of %d of %s are not likely to be: "
            text += "%d would be %s; were they seconds?"
            _logger.warning(text, self.count, counted(of, "record"), self.first_ms, iso_time(self.first_ms))


def files_below(paths: Sequence[str]) -> list[str]:
    """The files that are meant, as they are named; a folder means those in and below it (``folder_files``).

    Raises:
        InvalidConfig: a file is named twice, or a folder has none, or one that can't be taken.
        StorageUnavailable: a folder can't be listed, so that files would be left out.
    """
    files = [file for path in paths for file in (files_in(Path(path)) if _is_folder(path) else [path])]
    for file, count in Counter(file if file == STDIN else str(Path(file).resolve()) for file in files).items():
        if count > 1:
            raise InvalidConfig(f"{file} is given {count} times: its records would be appended {count} times")
    return files


@contextmanager
def _not_cut_off(raw: BinaryIO) -> Iterator[None]:
    """Around the reading of a file: one that loses its end meanwhile may end in a whole line, and look whole.

    Raises:
        InvalidRecord: it has become shorter; also where that is why a line has no end.
    """
    size_bytes = _size_bytes(raw)
    try:
        yield
    except InvalidRecord:
        _require_as_long(raw, size_bytes)
        raise
    _require_as_long(raw, size_bytes)


def _require_as_long(raw: BinaryIO, size_bytes: int) -> None:
    if _size_bytes(raw) < size_bytes:
        raise InvalidRecord("it became shorter while it was read")


def _size_bytes(raw: BinaryIO) -> int:
    """How long an open file is; 0 for a pipe, of which nobody knows."""
    try:
        told = os.fstat(raw.fileno())
    except OSError:  # what stands in for standard input has no number
        return 0
    return told.st_size if stat.S_ISREG(told.st_mode) else 0


def _has_size(path: str) -> bool:
    """Whether it is known how much there is to read; not of standard input, though a file may have its name."""
    return path != STDIN and Path(path).is_file()


def _is_folder(path: str) -> bool:
    return path != STDIN and Path(path).is_dir()
