"""A number of partitions that can't be is told; nothing is done with a topic that seems to have too few logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt
from keptlog.passes.purge import Purger
from keptlog.table.metadata.partitions import partition_count
from keptlog.table.store import LogStore
from tests.table.foreign import set_properties
from tests.table.stores import COMPACTED, NOW_MS, TOPIC, new_records, store_at

TOO_LOW = "property log.partitions=1 is too low, for there is log.p1"


@pytest.fixture
def lowered(tmp_path: Path) -> LogStore:
    """A topic of two partitions, both with records; another program says that it has one."""
    store = store_at(tmp_path)
    store.create_topic(TOPIC, 2, COMPACTED)
    store.append(TOPIC, [*new_records(("a", "1"), partition=0), *new_records(("b", "1"), partition=1)], "r1", NOW_MS)
    set_properties(tmp_path, {"log.partitions": "1"})
    return store


def test_no_key_is_appended_to_another_log_than_before(lowered: LogStore, tmp_path: Path) -> None:
    with pytest.raises(LogCorrupt, match=TOO_LOW):
        lowered.append(TOPIC, new_records(("b", "2")), "r2", NOW_MS)
    set_properties(tmp_path, {"log.partitions": "2"})
    assert [log.log_end_offset for log in lowered.logs(TOPIC)] == [1, 1]


def test_a_purge_and_whoever_describes_it_say_so(lowered: LogStore) -> None:
    with pytest.raises(LogCorrupt, match=TOO_LOW):
        lowered.describe_topic(TOPIC)
    assert TOO_LOW in str(Purger(lowered).purge([TOPIC], now_ms=NOW_MS).failed[TOPIC])


@pytest.mark.parametrize("number", ["0", "-1", "10001", "999999999", "9" * 5000, "1.0", ""])
def test_what_no_topic_can_have_is_refused_at_once(number: str) -> None:
    with pytest.raises(LogCorrupt, match="no number of partitions"):
        partition_count(TOPIC, {"log.partitions": number})


def test_more_than_ever_had_a_record_are_fine() -> None:
    assert partition_count(TOPIC, {"log.partitions": "10000", "log.p3.log-end-offset": "7", "log.ping": "x"}) == 10000
