"""What a task says of an input that is not there."""

from __future__ import annotations

from keptlog.errors import InputGone
from keptlog.log.topic_partition import TopicPartition


def input_gone(topic_partition: TopicPartition, what: str, since: str) -> InputGone:
    """The error; what became of the input only the table as it is now tells (``keptlog.table.reading.lost``)."""
    return InputGone(
        f"{topic_partition}: {what} is gone from storage since {since}: another commit has replaced it and a purge has "
        "deleted it, or it is lost; nothing was committed, plan again"
    )
