"""A topic that can't be read after a clean was planned costs only itself; of all topics it is an outage."""

from __future__ import annotations

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.home import new_id
from keptlog.passes.clean import Cleaner, Pass
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.passes.conftest import NOW_MS

TOPICS = "abc"


def cleaned(done: Pass) -> list[str]:
    return sorted(outcome.step.topic_partition.topic for outcome in done.committed)


@pytest.mark.parametrize("refused", ["a", "b", "c"])
def test_it_is_no_outage_of_the_others(store: LogStore, monkeypatch: pytest.MonkeyPatch, refused: str) -> None:
    cleaner = Cleaner(store, in_process_engine(store.files))
    planned = cleaner.begin((), new_id(), now_ms=NOW_MS)
    refuse(monkeypatch, refused)
    done = cleaner.commit(cleaner.stage(planned))
    assert cleaned(done) == [topic for topic in TOPICS if topic != refused]
    assert list(done.failed) == [f"{refused}-0"]
    assert (done.blameless, done.outage) == (frozenset(), None)


def test_where_no_topic_can_be_read_two_are_asked_and_it_is_an_outage(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleaner = Cleaner(store, in_process_engine(store.files))
    planned = cleaner.begin((), new_id(), now_ms=NOW_MS)
    asked = refuse(monkeypatch, TOPICS)
    done = cleaner.commit(cleaner.stage(planned))
    assert done.blameless == done.failed.keys() == {f"{topic}-0" for topic in TOPICS}
    assert done.outage is not None
    assert asked == ["data_location", "data_location", "describe_topic", "describe_topic"]


def refuse(monkeypatch: pytest.MonkeyPatch, topics: str) -> list[str]:
    """Topics that can't be read from now on; gives what they were asked for."""
    asked: list[str] = []

    def refusing(name: str) -> object:
        really = getattr(LogStore, name)

        def ask(store: LogStore, topic: str, *arguments: object) -> object:
            if topic in topics:
                asked.append(name)
                raise StorageUnavailable(f"topic {topic}: its metadata can't be read (AccessDenied)").for_good()
            return really(store, topic, *arguments)

        return ask

    for name in ("data_location", "describe_topic"):
        monkeypatch.setattr(LogStore, name, refusing(name))
    return asked
