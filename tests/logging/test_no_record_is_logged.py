"""Whatever is done to records, and whatever fails on the way, no line of the log has a key or a value of theirs."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import CommitTableResponse
from sqlalchemy.exc import OperationalError

from keptlog.errors import InvalidRecord
from keptlog.log.record import NewRecord, Record
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.passes.clean import Cleaner
from keptlog.table.catalogs.catalog import open_catalog
from tests.in_process import in_process_engine
from tests.table.stores import FaultyCatalog, new_id, staged, store_at, store_over

NOW_MS = 1_700_000_000_000
DAY_MS = 24 * 3_600_000
KEY, VALUE, HEADER = b"key-of-a-person", b"value-of-a-person", b"header-of-a-person"
Commit = Callable[[], CommitTableResponse]


def refused(commit: Commit) -> CommitTableResponse:
    raise CommitFailedException("another process was faster")


def locked(commit: Commit) -> CommitTableResponse:
    raise OperationalError("UPDATE", {}, Exception("database is locked"))


def leaked(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines, of any logger, that show key, value or header, as text, in base64 or in hex."""
    planted = [
        form for secret in (KEY, VALUE, HEADER) for form in (secret, base64.b64encode(secret), secret.hex().encode())
    ]
    said = [(record, logging.Formatter().format(record)) for record in caplog.records]
    return [f"{record.name}: {text}" for record, text in said if any(form.decode() in text for form in planted)]


def new(value: bytes | None = VALUE) -> NewRecord:
    return NewRecord(KEY, value, NOW_MS - DAY_MS, 0, (("h", HEADER),))


def do_everything(home: Path) -> None:
    """Append, clean, ingest and purge, each of them once refused, once out of reach, and two that fail for good."""
    settings = {"cleanup.policy": "compact", "segment.ms": "1", "max.message.bytes": "1000"}
    store_at(home).create_topic("t", 1, settings)
    faulty = FaultyCatalog(open_catalog(home))
    store = store_over(faulty)
    cleaner = Cleaner(store, in_process_engine(store.files))

    def clean() -> None:
        cleaner.commit(cleaner.stage(cleaner.begin(["t"], new_id(), now_ms=NOW_MS, requested=True)))

    for _ in range(2):
        faulty.faults = [refused, locked]
        store.append("t", [new(), new()], new_id(), NOW_MS - DAY_MS)
    faulty.faults = [refused, locked]
    clean()
    with pytest.raises(InvalidRecord):
        store.append("t", [new(VALUE * 100)], new_id(), NOW_MS)
    store_at(home).create_topic("there", 1, settings)
    segments = staged(store, "there", 0, [Record(7, KEY, VALUE, NOW_MS - DAY_MS, headers=(("h", HEADER),))])
    faulty.faults = [refused, locked]
    store.ingest("there", [Arrival(OffsetRange(0, None, 5, 9), tuple(segments))], SourceIdentity("users"), 1, new_id())
    for name in ("t", "there"):
        faulty.faults = [refused, locked]
        store.purge(name, 2**45)
    store.append("t", [new(), new(None)], new_id(), NOW_MS - DAY_MS)
    Path(store.logs("t")[0].segments[0].path.removeprefix("file://")).write_bytes(KEY + VALUE)
    clean()
    assert store.logs("t")[0].uncleanable


def test_no_line_has_a_key_or_a_value(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    do_everything(tmp_path)
    told = " ".join(record.getMessage() for record in caplog.records if record.name.startswith("keptlog."))
    for what in ("another commit came first", "can't be reached", "retired segments", "is uncleanable"):
        assert what in told
    assert leaked(caplog) == []


@pytest.mark.parametrize("secret", [KEY, repr((KEY, VALUE)), VALUE.hex(), base64.b64encode(HEADER).decode()])
def test_a_line_that_has_one_would_be_found(caplog: pytest.LogCaptureFixture, secret: object) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("keptlog.table.changes.append").debug("appended %s", secret)
    assert len(leaked(caplog)) == 1


def test_it_would_be_found_in_a_traceback_too(caplog: pytest.LogCaptureFixture) -> None:
    try:
        int(VALUE)
    except ValueError:
        logging.getLogger("keptlog.table.changes.append").exception("it failed")
    assert len(leaked(caplog)) == 1
