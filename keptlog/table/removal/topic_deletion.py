"""What became of the deletion of a topic, for whoever tells it to people."""

from __future__ import annotations

from dataclasses import dataclass, field

from keptlog.errors import KeptlogError
from keptlog.table.removal.drafts import Sealing
from keptlog.table.removal.journal import DeletedFile, EndedErasure
from keptlog.table.removal.removal import NotDeleted, not_deleted_error

IF_STOPPED_BEFORE = (
    "stopped; whether topic {topic} is deleted is not known: keptlog topic delete {topic} finishes it, or says that "
    "there is no such topic"
)
"""While the catalog is asked to take the topic out."""
IF_STOPPED_WITHIN = (
    "stopped; the deletion of topic {topic} has begun, and nobody finds its records any more: keptlog topic delete "
    "{topic}, or the next purge, finishes it"
)


@dataclass(frozen=True, slots=True)
class TopicDeletion:
    """What a deletion of a topic did, with what an earlier one, killed on its way, had left to do."""

    topic: str
    deleted_files: tuple[DeletedFile, ...] = ()
    not_deleted: tuple[NotDeleted, ...] = ()
    """What is still there; the topic is gone for readers and writers all the same."""
    receipts: tuple[str, ...] = ()
    """The ids of the receipts that tell it."""
    sealing: Sealing = field(default_factory=Sealing)
    """What became of the receipts that lay in the topic's folder."""
    is_over: bool = True
    """Whether nothing is left to do."""
    ended: tuple[EndedErasure, ...] | None = ()
    """The open erasures that have ended with it; null if they could not be read."""

    @property
    def unfinished(self) -> KeptlogError | None:
        """Why it is not over, and what to do; null if it is."""
        todo = f"keptlog topic delete {self.topic}, or the next purge, finishes it"
        if self.not_deleted and self.is_over:
            return not_deleted_error(
                self.topic, self.not_deleted, "nothing else is left of the topic: delete it by hand"
            )
        if self.not_deleted:
            return not_deleted_error(self.topic, self.not_deleted, f"see to it that they can be: {todo}")
        if self.is_over:
            return None
        why = self.sealing.why or "its folder is still being written to"
        return self.sealing.error(f"topic {self.topic}: its files are deleted, its receipts not sealed ({why}): {todo}")

    def after(self, earlier: TopicDeletion) -> TopicDeletion:
        """Both in one: an earlier topic of this name was finished first."""
        return TopicDeletion(
            self.topic,
            earlier.deleted_files + self.deleted_files,
            self.not_deleted,
            earlier.receipts + self.receipts,
            self.sealing,
            self.is_over,
            None if earlier.ended is None or self.ended is None else earlier.ended + self.ended,
        )
