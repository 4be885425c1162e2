"""Who agrees to what goes from a log agrees to that of the topic that he saw: a later one of its name keeps all."""

from __future__ import annotations

import pytest

from keptlog.cli import retention, truncate
from keptlog.home import open_home
from keptlog.log.record import Record
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.table.store import LogStore
from tests.cli.conftest import Run
from tests.table.stores import NOW_MS, new_id, staged

OFFSETS = [0, 1, 2]


def _ingest(store: LogStore) -> None:
    store.create_topic("users", 1, {})
    segments = staged(store, "users", 0, [Record(offset, b"k", b"v", NOW_MS) for offset in OFFSETS])
    arrived = Arrival(OffsetRange(0, None, 0, 3), tuple(segments))
    store.ingest("users", [arrived], SourceIdentity("there"), 1, new_id())


def _made_anew(_: str) -> None:
    store = open_home().store
    store.delete_topic("users", NOW_MS)
    _ingest(store)


@pytest.mark.parametrize("run", [(), ("--run-id", "run")])
@pytest.mark.parametrize(("module", "command"), [(retention, "delete-records"), (truncate, "truncate")])
@pytest.mark.usefixtures("home")
def test_a_command_that_waits_for_its_answer(
    keptlog: Run, monkeypatch: pytest.MonkeyPatch, module: object, command: str, run: tuple[str, ...]
) -> None:
    _ingest(open_home().store)
    monkeypatch.setattr(module, "is_asked", lambda **_: True)
    monkeypatch.setattr(module, "confirm", _made_anew)
    told = keptlog(command, "users-0", "1", *run)
    assert told.code != 0
    assert "topic users was deleted and created again meanwhile; nothing landed in the new one" in told.err
    assert [record.offset for _, record in open_home().store.read("users")] == OFFSETS
    monkeypatch.setattr(module, "confirm", lambda _: None)
    assert keptlog(command, "users-0", "1", *run).code == 0
    assert [record.offset for _, record in open_home().store.read("users")] != OFFSETS
