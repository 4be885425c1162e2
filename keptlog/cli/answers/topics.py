"""What commands print of topics and records: topic, append, read, files, ingest, import, restore, reader."""

from __future__ import annotations

from typing import TypedDict


class CreatedTopicForm(TypedDict):
    """`topic create`."""

    topic: str
    partitions: int
    location: str


class ListedTopicForm(TypedDict):
    """One topic."""

    topic: str
    partitions: int
    cleanup_policy: list[str]


class TopicListForm(TypedDict):
    """`topic list`."""

    topics: list[ListedTopicForm]


SettingRowForm = TypedDict("SettingRowForm", {"setting": str, "value": int | float | bool | str, "from": str})


class TopicLogForm(TypedDict):
    """One log of a topic."""

    topic_partition: str
    log_start_offset: int
    first_dirty_offset: int | None
    """Null: nothing was ever cleaned, or all is to be judged again."""
    log_end_offset: int
    segments: int
    position_at_source: int | None
    """The next offset that an ingest reads; null without a source."""


class SourceForm(TypedDict):
    """Where an ingested topic's records come from."""

    topic: str
    topic_id: str | None
    bootstrap: str | None


class WithoutMeaningForm(TypedDict):
    """Kafka's settings that mean nothing on a lake, with the reason."""

    topic: dict[str, str]
    broker: dict[str, str]


class TopicDescriptionForm(TypedDict):
    """`topic describe`."""

    topic: str
    description: str | None
    owners: list[str]
    partitions: int
    location: str
    source: SourceForm | None
    settings: list[SettingRowForm]
    broker: list[SettingRowForm]
    without_meaning: WithoutMeaningForm
    logs: list[TopicLogForm]


class AlteredTopicForm(TypedDict):
    """`topic alter`."""

    topic: str
    config: dict[str, str]
    """The settings that are the topic's own now."""
    notes: list[str]
    """What is easily overlooked: which records will be deleted that stayed before."""


class NotDeletedForm(TypedDict):
    """A file that was to go and is still there."""

    path: str
    bytes: int
    reason: str


class DeletionForm(TypedDict):
    """What the deletion of a topic did."""

    deleted_files: int
    not_deleted: list[NotDeletedForm]
    is_over: bool
    receipts: list[str]
    receipts_waiting: list[str]
    ended_erasures: list[str] | None
    """Open erasures that have ended with the topic, by id; null if they could not be read. A receipt tells them."""


class DeletedTopicForm(DeletionForm):
    """`topic delete`."""

    topic: str


class RegisteredEndForm(TypedDict):
    """How far a log goes, or the chain of receipts."""

    name: str
    """Topic-partition, or `chain`."""
    before: int | None
    """The log end offset, or the number of receipts, as the catalog has it; null where nobody can tell it."""
    after: int


class RegistrationForm(TypedDict):
    """What the catalog names then."""

    before: str | None
    """The metadata file that it named; null if it had none."""
    metadata: str
    updated_ms: int
    """When that state was made."""
    ends: list[RegisteredEndForm]


class RegisteredTopicsForm(TypedDict):
    """`topic register`."""

    topics: dict[str, RegistrationForm | None]
    """Null where the catalog named the newest state already."""
    receipts: RegistrationForm | None
    """Null as well if there are none."""
    is_registered: bool
    """False with --dry-run."""


class DifferenceForm(TypedDict):
    """A setting, or another thing that a file declares."""

    what: str
    before: str | None
    after: str | None


class PlannedTopicForm(TypedDict):
    """A topic that is to be made or altered."""

    topic: str
    action: str
    """create or alter."""
    differences: list[DifferenceForm]
    notes: list[str]


class TopicsPlanForm(TypedDict):
    """`topic apply --dry-run`."""

    changes: list[PlannedTopicForm]
    deletions: list[str]
    unchanged: list[str]
    undeclared: list[str]
    gone: list[str]
    """Were to be deleted and are not there."""
    not_tried: list[str]
    """Catalog or storage did not answer before."""


class AppliedTopicsForm(TopicsPlanForm):
    """`topic apply`."""

    done: list[str]
    deleted: dict[str, DeletionForm]


class AppendedLogForm(TypedDict):
    """What one log got."""

    topic_partition: str
    position: int | None
    """Of records with offsets of their own: where the log stood before."""
    base_offset: int | None
    last_offset: int | None
    records: int
    skipped: int
    """Were there already."""
    bytes: int


class AppendedForm(TypedDict):
    """`append`."""

    topic: str
    run_id: str
    is_repeated: bool
    records: int
    skipped: int
    bytes: int
    partitions: list[AppendedLogForm]
    left_out: dict[str, int]


class FileForm(TypedDict):
    """One live segment."""

    path: str
    topic_partition: str
    base_offset: int
    last_offset: int
    records: int
    bytes: int


class FilesForm(TypedDict):
    """`files`."""

    topic: str
    log_start_offsets: dict[str, int]
    """By topic-partition; records below it are deleted, and may still be in the first file."""
    files: list[FileForm]


class IntakeForm(TypedDict):
    """What one log got of an ingest."""

    topic_partition: str
    records: int
    tombstones: int
    reconciled: int
    """Keys that were deleted here because they are gone there."""
    unkeyed: int
    from_offset: int
    end_offset: int
    segments: int
    bytes: int
    skipped: list[str]
    """What is damaged at the source and was left out, a line each."""


class IngestedForm(TypedDict):
    """`ingest kafka`, `import kafka-logs`."""

    run_id: str
    created: dict[str, dict[str, str]]
    """New topics with their settings."""
    committed: list[IntakeForm]
    warnings: list[str]
    left_out_settings: dict[str, dict[str, str]]
    left_out_topics: list[str]


class RestoredLogForm(TypedDict):
    """What one topic-partition got."""

    topic_partition: str
    from_offset: int
    end_offset: int
    records: int


class RestoredToBrokerForm(TypedDict):
    """`restore --to kafka`."""

    topic: str
    target: str
    bootstrap: str | None
    is_created: bool
    records: int
    logs: list[RestoredLogForm]
    zero_timestamps: int


class RestoredToFileForm(TypedDict):
    """`restore --to jsonl`, `restore --to parquet`."""

    topic: str
    file: str
    records: int
    bytes: int


class ReaderRowForm(TypedDict):
    """Where a reader stands in one log."""

    topic_partition: str
    reader: str
    position: int | None
    log_end_offset: int
    lag: int
    hold_max_ms: int
    holds_since_ms: int | None
    holds_until_ms: int | None
    missed: str | None
    problem: str | None


class ReadersForm(TypedDict):
    """`reader list`."""

    readers: list[ReaderRowForm]


class AddedReaderForm(TypedDict):
    """`reader add`."""

    topic: str
    reader: str
    hold_max_ms: int


class MovedReaderForm(TypedDict):
    """`reader commit`."""

    topic: str
    reader: str
    positions: dict[str, int]


class RemovedReaderForm(TypedDict):
    """`reader remove`."""

    topic: str
    reader: str
