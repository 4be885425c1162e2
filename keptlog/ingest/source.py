"""What an ingest asks of a source: five questions, and whatever else it does is its own.

    survey       what is there?             changes nothing; may take a while
       |            the pass plans: which offsets to read, from the positions here (``keptlog.log.source``)
    epochs       was it cut off?            asked where a later leader leads, and nothing is to be read
    cut          in which parts?            reads nothing
       |            tasks read the parts, side by side, and stage segments
    tombstones   how long do they stay?     asked of topic-partitions where offsets are missing in what was read
    confirm      may what was read land?    asked once a topic, between reading and commit
       |            the pass commits

A source knows nothing of tables, tasks and commits, and is told no more than what a topic here remembers of it. One
object serves one ingest: what a survey has found out it may keep for the cut.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from keptlog.errors import KeptlogError, StalePlan
from keptlog.log.source import IngestPlan, SourceTopic, StoredSource
from keptlog.log.topic_partition import TopicPartition

if TYPE_CHECKING:
    from keptlog.engine.ingest_tasks import Part

EpochEnds = tuple[Mapping[TopicPartition, int | None], Mapping[TopicPartition, KeptlogError]]
"""What ``Source.ends_of_epochs`` gives: the ends, and why others are not known."""


@dataclass(frozen=True, slots=True)
class TopicSurvey:
    """A topic as it is at its source."""

    topic: str
    """The one here, which need not exist."""
    there: SourceTopic
    config: Mapping[str, str] = field(default_factory=dict)
    """The topic's settings, if it does not exist yet."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Settings that it has there and that mean nothing here, with the reason."""
    lacking: Mapping[int, str] = field(default_factory=dict)
    """By partition, what shows that records may be missing that are no deletions, wherever they were."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What a source says of the topics that it was asked for; a topic without any log that can be had is in neither."""

    topics: tuple[TopicSurvey, ...]
    failed: dict[str, KeptlogError]
    """Topics, or topic-partitions, that can't be had, with the error."""
    warnings: tuple[str, ...] = ()
    """What stops nothing and should be known, a line each."""
    refusal: KeptlogError | None = None
    """Why none of the topics can be had, where that fails no topic of its own; ``warnings`` say it too. Whoever has
    something else to tell of them tells that as well, so nobody raises it here."""
    unasked: Mapping[str, KeptlogError] = field(default_factory=dict)
    """Topics that are left out because nobody could look whether they are there, with the error."""

    def why_unseen(self, topic: str) -> KeptlogError | None:
        """Why nothing is known of a topic that was asked for, and was there before; null if it is there."""
        if any(each.topic == topic for each in self.topics):
            return None
        gone = StalePlan(
            f"topic {topic} was there when it was planned what to read, and its source does not show it as the same "
            "topic now; nothing of it was committed, ingest again to see what is there"
        )
        return self.failed.get(topic) or self.unasked.get(topic) or self.refusal or gone


class Source(Protocol):
    """Somewhere that holds topics whose records have Kafka's offsets."""

    @property
    def topics(self) -> Collection[str]:
        """The topics here that are to be filled from it; they need not exist."""
        ...

    @property
    def is_copy(self) -> bool:
        """Whether parts read what the survey saw, and notice if it has changed; or it goes on growing meanwhile."""
        ...

    def survey(self, stored: Mapping[str, StoredSource | None]) -> Survey:
        """Look at some of the topics; changes nothing. A topic that can't be looked at fails alone.

        Args:
            stored: what each topic here remembers; null for one that does not exist yet.

        Raises:
            InvalidConfig: nobody has said where the source is.
            StorageUnavailable: it needs tasks to look, and whoever runs them fails.
        """
        ...

    def ends_of_epochs(self, plans: Sequence[IngestPlan]) -> EpochEnds:
        """Up to where the logs are what they were under the leaders of what plans are unsure of; or why nobody says it.

        Null says that it was cut off, and not where. One without an answer that is in neither is as it was planned.
        A source whose logs have ``epoch_starts``, or no leaders, is never asked.
        """
        ...

    def cut(self, plans: Sequence[IngestPlan], cores: int) -> Sequence[Sequence[Part]]:
        """The parts of each plan, in the plans' order, so that together they keep ``cores`` busy.

        A plan's parts are its ranges in their order, cut anywhere: without gaps, and none of them overlap.
        """
        ...

    def tombstones_kept_ms(self, plan: IngestPlan, partitions: Collection[int]) -> Mapping[int, int | None]:
        """How long the cleaner there keeps a tombstone that it has met, by partition; null if the source does not say.

        A topic-partition is left out if its cleaner has removed nothing behind the position that was planned from.
        One that is not compacted any more is not, if it was at that position: its cleaner may have been there since.

        Raises:
            KeptlogError: it can't be told now; nothing of these topic-partitions is committed.
        """
        ...

    def confirm(self, plan: IngestPlan) -> bool | None:
        """Whether what was read for a plan may land, as far as the parts could not know.

        The answer is whether the topic is compacted there now, which is remembered; null if the source does not say.

        Raises:
            KeptlogError: it must not; nothing of the topic is committed.
        """
        ...
