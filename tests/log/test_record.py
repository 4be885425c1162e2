"""What a record's fields are."""

from keptlog.log.record import TimestampType


def test_the_types_of_timestamps_have_kafkas_numbers() -> None:
    assert (TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME) == (0, 1)
