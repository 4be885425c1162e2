"""What is remembered of a deleted key."""

from dataclasses import replace

from keptlog.log.clean import clean
from keptlog.log.holds import Hold, Holds
from keptlog.log.record import Record
from keptlog.log.strategy import Strategy, StrategyKind
from keptlog.log.watermark import Watermark, watermark_of, watermarks_after
from tests.building import Clean, segment

BY_TIMESTAMP = Strategy(StrategyKind.TIMESTAMP)
HORIZON_MS = 1000
GONE_MS = 3000


def tombstone(time_ms: int = 9) -> Record:
    return Record(4, b"a", None, time_ms, delete_horizon_ms=HORIZON_MS)


def test_a_tombstone_leaves_its_version_until_some_time_after_it_has_gone() -> None:
    assert watermark_of(tombstone(), BY_TIMESTAMP, 50, GONE_MS) == Watermark(b"a", 9, GONE_MS + 50)


def test_a_late_record_that_came_while_a_reader_held_the_tombstone_does_not_bring_its_key_back() -> None:
    """He holds it as long as its version would have been remembered from its horizon on."""
    late = Record(5, b"a", b"old", 6)
    held_until_ms = HORIZON_MS + 50
    request = Clean(
        5, 6, strategy=BY_TIMESTAMP, watermark_retention_ms=50, now_ms=held_until_ms, holds=Holds((Hold("r", 0, 50),))
    )
    expired = clean(request.expiry([segment(4, 4, horizon_ms=HORIZON_MS)]), [[tombstone()]])
    assert not expired.records
    after = replace(request, now_ms=held_until_ms + 1).step([segment(5, 5)])
    assert not clean(after, [[late]], expired.watermarks).records


def test_a_tombstone_without_a_version_leaves_nothing() -> None:
    assert watermark_of(tombstone(), Strategy(), 50, GONE_MS) is None
    assert watermark_of(tombstone(), Strategy(StrategyKind.HEADER, "version"), 50, GONE_MS) is None


def test_what_has_no_key_or_was_never_stamped_leaves_nothing() -> None:
    assert watermark_of(replace(tombstone(), key=None), BY_TIMESTAMP, 50, GONE_MS) is None
    assert watermark_of(replace(tombstone(), delete_horizon_ms=None), BY_TIMESTAMP, 50, GONE_MS) is None


def test_a_watermark_wins_against_lower_versions_and_against_none_and_loses_a_tie() -> None:
    order = Watermark(b"a", 9, 0).order
    assert order > BY_TIMESTAMP.order_of(Record(70, b"a", b"late", 8))
    assert order < BY_TIMESTAMP.order_of(Record(70, b"a", b"same", 9))
    assert order > Strategy().order_of(Record(70, b"a", b"none", 99))


def test_a_watermark_goes_when_a_record_has_won_against_it() -> None:
    mark = Watermark(b"a", 9, 2000)
    assert watermarks_after([mark], [], {b"a": mark.order, b"b": (True, 99, 1)}, 1000, is_expiry=False) == [mark]
    assert watermarks_after([mark], [], {b"a": (True, 8, 70)}, 1000, is_expiry=False) == [mark]
    assert watermarks_after([mark], [], {b"a": (True, 9, 70)}, 1000, is_expiry=False) == []


def test_a_watermark_goes_at_its_time_but_not_with_an_expiry() -> None:
    mark = Watermark(b"a", 9, 2000)
    assert watermarks_after([mark], [], {}, 1999, is_expiry=False) == [mark]
    assert watermarks_after([mark], [], {}, 2000, is_expiry=False) == []
    assert watermarks_after([mark], [], {}, 2000, is_expiry=True) == [mark]


def test_a_tombstone_that_goes_takes_the_place_of_its_keys_old_watermark() -> None:
    old, new, other = Watermark(b"b", 1, 9999), Watermark(b"b", 7, 9999), Watermark(b"a", 3, 9999)
    assert watermarks_after([old], [new, other], {b"b": (True, 7, 4)}, 1000, is_expiry=False) == [other, new]
