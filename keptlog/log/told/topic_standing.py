"""How all logs of a topic stand, and what else ``keptlog status`` tells of it: what is remembered of it as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from keptlog.log.assessment import Assessment
from keptlog.log.erasures.open_erasures import OpenErasures
from keptlog.log.holder import Holdings
from keptlog.log.told.metrics import LastPass, Tally, added_up
from keptlog.log.told.standing import LogStanding, Term, standing_of, term_of
from keptlog.log.told.stored_files import FilesOnDisk
from keptlog.log.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class TopicStanding:
    """A topic's logs, or those of them that were named, while ``term`` lasts."""

    location: str
    """Of the metadata by which it stands so."""
    term: Term
    logs: int
    worst: LogStanding | None
    standings: Callable[[], Sequence[LogStanding]]
    """Of each log, the worst first. Whoever only wants the worst need not have them read."""
    tally: Tally
    is_compacted: bool
    holdings: Holdings
    erasures: OpenErasures
    files: Callable[[], FilesOnDisk | None]
    """On a disk of this machine; null if that is not to be told of them together."""


def topic_standing(
    assessments: Sequence[Assessment],
    passes: Mapping[TopicPartition, LastPass],
    of_topic: tuple[str, Holdings, OpenErasures],
    files: FilesOnDisk | None,
    now_ms: int,
) -> TopicStanding:
    """Of logs of one topic that were judged at this time; ``of_topic`` has its location and what is told of it all."""
    judged = [standing_of(each, passes.get(each.log.topic_partition)) for each in assessments]
    ranked = sorted(judged, key=lambda each: each.rank(now_ms))
    location, holdings, erasures = of_topic
    return TopicStanding(
        location=location,
        term=term_of(assessments, now_ms),
        logs=len(ranked),
        worst=ranked[0] if ranked else None,
        standings=lambda: ranked,
        tally=added_up(each.tally for each in ranked),
        is_compacted=any(each.log.config.is_compacted for each in assessments),
        holdings=holdings,
        erasures=erasures,
        files=lambda: files,
    )
