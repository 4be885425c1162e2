"""What commands print of logs and passes: plan, explain, status, verify, clean, expire, retain, purge."""

from __future__ import annotations

from typing import TypedDict

from keptlog.cli.answers.topics import DeletionForm, NotDeletedForm


class HolderRowForm(TypedDict):
    """What keeps bytes that are not live, and until when."""

    kind: str
    name: str
    """Empty where the kind says all."""
    topic: str
    """Empty: it lies on this machine, and may be of any topic. `status` tells it once it is late."""
    topic_partition: str | None
    """Null: of the whole topic."""
    files: int | None
    bytes: int | None
    since_ms: int
    until_ms: int | None
    deadline_ms: int | None
    late_files: int
    is_late: bool
    is_post_dated: bool
    """Whether `since_ms` lies ahead of the clock, so that nobody can tell when it is late. Asked by `explain` alone."""
    remedy: str
    told: str


class StepForm(TypedDict):
    """What would be done to one log."""

    topic_partition: str
    action: str
    """compact, expire or retain."""
    trigger: str | None
    segments: int
    bytes: int
    log_start_offset: int
    first_dirty_offset: int | None
    end_offset: int | None
    new_log_start_offset: int | None
    told: str


class PlanForm(TypedDict):
    """`plan`."""

    now_ms: int
    steps: list[StepForm]
    retention: list[StepForm]
    left_alone: dict[str, str]
    """Why, by topic-partition."""
    holders: list[HolderRowForm]


class SectionForm(TypedDict):
    """clean, cleanable, uncleanable or active."""

    name: str
    base_offset: int | None
    end_offset: int | None
    segments: int
    records: int
    bytes: int


class ExplanationForm(TypedDict):
    """`explain`."""

    topic_partition: str
    verdict: str
    trigger: str | None
    sections: list[SectionForm]
    rules: list[str]
    due: str
    due_ms: int | None
    """When the clock alone makes it due, and it is due then; null: only new records can, or a reader who reads on."""
    holders: list[HolderRowForm]
    holders_not_looked_at: list[str]
    obstacles: list[str]
    """What a clean would fail of."""
    files_not_looked_at: list[str]


class CheckForm(TypedDict):
    """What one check found in one log, in one topic, or on this machine."""

    topic_partition: str
    """A log; a topic, where the check is of all of it; or `this machine`, which is no topic."""
    check: str
    """G1 to G8."""
    result: str
    """ok, BROKEN or not looked at."""
    what: str


class ChecksForm(TypedDict):
    """`verify`."""

    checks: list[CheckForm]


class MarkForm(TypedDict):
    """Why a log is uncleanable."""

    reason: str
    since_ms: int
    attempts: int
    retry_at_ms: int
    action: str
    wait_ms: int | None
    """How long before retry_at_ms it failed last; null in a mark of before."""


class LogStatusForm(TypedDict):
    """One log."""

    topic_partition: str
    log_start_offset: int
    first_dirty_offset: int
    log_end_offset: int
    segments: int
    clean_bytes: int
    cleanable_bytes: int
    cleanable_ratio: float
    max_compaction_delay_ms: int
    earliest_uncompacted_ms: int | None
    uncleanable: MarkForm | None
    trigger: str | None
    due_ms: int | None
    metrics: dict[str, int | None]


class StatusForm(TypedDict):
    """`status`."""

    now_ms: int
    """As of when."""
    metrics: dict[str, int | None]
    """Over all logs, under Kafka's names."""
    logs: list[LogStatusForm]
    holders: list[HolderRowForm]
    read_only: str | None
    """Why nothing may be changed in this home."""
    cleaner_disabled: str | None
    damaged: dict[str, str]
    """What is wrong with files on the disk, by topic-partition."""
    files_not_looked_at: dict[str, str]
    """Why files on the disk can't be asked for, by topic-partition: they are neither missing nor fine."""
    broken: dict[str, str]
    """What verify has found broken and not seen whole since, by topic-partition or topic; empty too if `errors` says
    that nobody knows."""


class CountsForm(TypedDict):
    """Records by what became of them."""

    kept: int
    stamped: int
    superseded: int
    expired: int
    unkeyed: int


class CleanedLogForm(TypedDict):
    """What a clean did to one log."""

    topic_partition: str
    trigger: str
    records_in: int
    records_left: int
    counts: CountsForm
    malformed: int
    segments_kept: int
    segments_rewritten: int
    bytes_written: int
    end_offset: int
    """Up to here it was cleaned, or its tombstones removed; exclusive."""
    planned_end_offset: int
    """Up to where it was to be cleaned."""
    ends_early: bool
    """Whether the offset map was full before that: another clean goes on from there."""


class CleanedForm(TypedDict):
    """`clean`, `expire`."""

    run_id: str
    committed: list[CleanedLogForm]
    left_alone: dict[str, str]


class RetainedLogForm(TypedDict):
    """What retention removed of one log."""

    topic_partition: str
    segments: int
    records: int
    bytes: int
    log_start_offset_before: int
    log_start_offset: int


class RetainedForm(TypedDict):
    """`retain`."""

    run_id: str
    committed: list[RetainedLogForm]
    left_alone: dict[str, str]


class HeldFileForm(TypedDict):
    """A file that may still hold values."""

    path: str
    bytes: int
    holder: str


class DeletedRecordsForm(TypedDict):
    """`delete-records`."""

    topic_partition: str
    log_start_offset: int
    segments: int
    bytes: int
    held_files: list[HeldFileForm]
    """Live segments in which deleted records still lie: they go with those."""
    run_id: str
    is_repeated: bool


class RecordsPreviewForm(TypedDict):
    """`delete-records --dry-run`."""

    is_dry_run: bool
    topic_partition: str
    log_start_offset_before: int
    log_start_offset: int
    segments: int
    bytes: int


class TruncatedForm(TypedDict):
    """`truncate`."""

    topic_partition: str
    log_end_offset_before: int
    log_end_offset: int
    records: int
    """That went."""
    run_id: str
    is_repeated: bool
    """Whether this run id has truncated the log before: then this is what it did at that time."""


class TruncationPreviewForm(TypedDict):
    """`truncate --dry-run`."""

    is_dry_run: bool
    topic_partition: str
    log_end_offset_before: int
    log_end_offset: int
    records: int
    """That would go; where it `is_repeated`, that went."""
    is_repeated: bool
    """Whether this run id has truncated the log before, so that nothing more would go."""


class EndedRefForm(TypedDict):
    """A tag or a branch that a purge drops, for its own retention is over."""

    kind: str
    """tag or branch."""
    name: str
    kept_until_ms: int


class PurgedTopicForm(TypedDict):
    """What is gone of one topic, and what is still there."""

    is_idle: bool
    """Nothing was committed or became due since its last purge; what is told is of that one."""
    expired_snapshots: int
    deleted_files: int
    """Replaced segments."""
    deleted_metadata_files: int
    """Manifests and manifest lists of expired snapshots."""
    deleted_orphans: int
    """Files that nothing referred to."""
    deleted_bytes: int
    """Of all these files."""
    dropped_refs: list[EndedRefForm]
    held_files: list[HeldFileForm]
    not_deleted: list[NotDeletedForm]
    unreadable: list[str]
    not_looked_at: list[str]
    receipts: list[str]
    receipts_waiting: list[str]


class PurgedForm(TypedDict):
    """`purge`."""

    topics: dict[str, PurgedTopicForm]
    deletions: dict[str, DeletionForm]
    """Of topics whose deletion was begun before."""


class TopicPreviewForm(TypedDict):
    """What would be gone of one topic."""

    snapshots: int
    files: int
    """Replaced files: segments, manifests, manifest lists."""
    segments: int
    """Of these files."""
    orphans: int
    bytes: int
    elsewhere: int
    """Replaced segments outside of the topic's folder: no purge deletes these."""
    not_looked_at: list[str]
    """What the storage did not tell: what lies there is not counted."""
    refs: list[EndedRefForm]
    """That would be dropped."""


class PurgePreviewForm(TypedDict):
    """`purge --dry-run`."""

    is_dry_run: bool
    topics: dict[str, TopicPreviewForm]
    deletions: list[str]


class LogCostForm(TypedDict):
    """What one pass did to one log, or to several that are told together."""

    topic_partition: str | None
    trigger: str
    records_read: int
    bytes_read: int
    bytes_written: int
    superseded: int
    expired: int
    unkeyed: int
    map_keys: int
    dropped: int
    logs: int


class CommitForm(TypedDict):
    """One commit to a topic."""

    snapshot_id: int
    at_ms: int
    operation: str
    is_own: bool
    """Whether keptlog made it, and no other program."""
    run_id: str | None
    records_added: int
    records_removed: int
    bytes_added: int
    bytes_removed: int
    files_added: int
    files_removed: int
    duration_ms: int | None
    triggers: list[str]
    logs: list[LogCostForm]


class DayCostForm(TypedDict):
    """What the commits of one day add up to."""

    day: str
    commits: int
    cleans: int
    bytes_read: int
    bytes_written: int
    records_arrived: int
    records_removed: int
    duration_ms: int


class HistoryForm(TypedDict):
    """`history`."""

    topic: str
    commits: list[CommitForm]
    days: list[DayCostForm]
