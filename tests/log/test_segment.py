"""What a segment's metrics say where a file has none of a kind."""

from keptlog.log.segment import Segment
from tests.building import NOW_MS


def test_a_segment_has_no_tombstone_stamp_or_record_without_key_unless_its_metrics_say_so() -> None:
    plain = Segment("0-9.parquet", 0, 9, NOW_MS, NOW_MS, record_count=10, size_bytes=100)
    assert (plain.tombstone_count, plain.unkeyed_count, plain.stamped_count) == (0, 0, 0)
    assert not plain.has_expired_tombstone(NOW_MS)
