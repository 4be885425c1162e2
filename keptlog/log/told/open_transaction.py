"""What waits at a broker behind an open transaction: it is neither read nor lost, and in no lag.

Nothing at or beyond the last stable offset may be read, whoever wrote it. So while one transaction is open, an ingest
that has read all it may is not behind, and the log there grows:

    here    [ 0 ... 5 )
    there   [ 0 ... 5 )[ open ............ 1006 )       lag 0, and 1001 offsets wait

Most transactions end within seconds, and their coordinator aborts those that are older than their timeout. One that
stays **hangs**: only people end it, and until then retention there may take what waits. What tells them apart is the
last stable offset: it moves with the end of each transaction, though the next one may be open by then. So it is
remembered with the condition, and at another offset there is another transaction.

Retention moves it as well, once it takes the beginning of the open transaction: then it is the log start. So of a log
that ends for readers where it begins it is taken to be the same one. A transaction that begins right there is told too
early by that, at most: only if no look of 16 minutes has found anything committed.
"""

from __future__ import annotations

from keptlog.log.source import SourceLog
from keptlog.log.told.conditions import Condition, Level, Matter
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.counted import counted

HANGS_AFTER_MS = 16 * 60_000
"""Kafka's transaction.max.timeout.ms, 15 minutes unless a broker sets it, and a minute to abort what is older."""


def why_waiting(log: SourceLog) -> str | None:
    """What waits in a log at its source, after its name; null if nothing does."""
    if not log.waiting:
        return None
    if log.end_offset == log.log_start_offset:
        where = f"a transaction is open at offset {log.end_offset}, where the log begins"
    else:
        where = f"a transaction is open from offset {log.end_offset} on"
    return (
        f"{where}; {counted(log.waiting, 'offset')}, up to "
        f"{log.end_offset + log.waiting - 1}, can't be read before it ends"
    )


def hanging_condition(name: TopicPartition, log: SourceLog) -> Condition | None:
    """That a transaction hangs, once its log was seen for long with the same last stable offset; null without one."""
    waiting = why_waiting(log)
    if waiting is None:
        return None
    text = (
        f"the ingest of {name} waits: at its source {waiting}, and it is open for longer than "
        "transaction.max.timeout.ms usually allows: see whose it is (kafka-transactions.sh find-hanging), and have it "
        "ended, or abort it (kafka-transactions.sh abort), before retention there takes what waits"
    )
    return Condition(
        Matter.INGEST,
        hanging_subject(name),
        text,
        name.topic,
        Level.OPEN,
        lasts_ms=HANGS_AFTER_MS,
        level_if_lasting=Level.BROKEN,
        offset=log.end_offset,
        may_have_moved=log.end_offset == log.log_start_offset,
    )


def hanging_subject(name: TopicPartition) -> str:
    """What the condition is about: not the topic-partition alone, whose ingest may be stopped besides."""
    return f"{name} behind an open transaction"
