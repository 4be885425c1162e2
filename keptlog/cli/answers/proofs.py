"""What commands print that tell and prove: erase, erasure, receipt, repair, notify; and of Spark."""

from __future__ import annotations

from typing import Any, TypedDict


class HindranceForm(TypedDict):
    """What makes a deadline impossible."""

    what: str
    until_ms: int | None
    remedy: str


class ProposedErasureForm(TypedDict):
    """What a request would do to one topic."""

    way: str
    deadline_ms: int | None
    no_promise: str | None
    """Why there is no deadline."""
    earliest_ms: int
    latest_ms: int
    """The same if the keys are in the slowest of the logs that they may be in, or were deleted lately."""
    is_impossible: bool
    hindrances: list[HindranceForm]
    is_repeated: bool


class ErasureProposalForm(TypedDict):
    """`erase --dry-run`."""

    id: str
    keys: int
    topics: dict[str, ProposedErasureForm]


class RequestedErasureForm(TypedDict):
    """What was asked for in one topic."""

    state: str
    way: str
    deadline_ms: int | None
    tombstones: int
    """That were appended for it: one in each log that has a key. 0 if it goes another way."""
    is_repeated: bool


class ErasureRequestForm(TypedDict):
    """`erase`."""

    id: str
    topics: dict[str, RequestedErasureForm]


class KeyHashesForm(TypedDict):
    """`erase --hash`: with the fingerprint of their secret, as `--key-hash` and the job `erase` take them."""

    key_hashes: list[str]


class ErasureRowForm(TypedDict):
    """How far an erasure is in one topic."""

    id: str
    topic: str
    keys: int
    way: str
    state: str
    states: dict[str, int]
    """When it reached each state, in ms."""
    next_ms: int | None
    deadline_ms: int | None
    is_overdue: bool
    delay_ms: int
    blocked: list[str]
    reason: str
    """As it was given with the request; empty: none was."""


class ErasuresForm(TypedDict):
    """`erasure list`, `erasure verify`."""

    erasures: list[ErasureRowForm]


class BoundForm(TypedDict):
    """Below which offset no record of the keys is to be."""

    topic_partition: str
    end_offset: int
    key_hash: str | None


class ErasureDetailsForm(ErasureRowForm):
    """The same with what was asked for."""

    key_hashes: list[str]
    secret_fingerprint: str
    bounds: list[BoundForm]
    receipt: str | None
    """The id of its receipt, once it is verified."""


class ShownErasureForm(TypedDict):
    """`erasure show`."""

    erasures: list[ErasureDetailsForm]


class ReceiptRowForm(TypedDict):
    """One receipt."""

    number: int
    id: str
    kind: str
    topic: str | None
    request: str | None
    """The id of the erasure that it proves; null of all other kinds."""
    done_ms: int
    files: int
    """That are gone, and how large they were: 0 of an erasure, whose files were looked through."""
    bytes: int
    key_id: str


class ReceiptsForm(TypedDict):
    """`receipt list`."""

    receipts: list[ReceiptRowForm]


class FindingForm(TypedDict):
    """One thing that is wrong with a chain of receipts."""

    flaw: str
    text: str
    files: list[str]
    sequences: list[int]
    """Numbers of receipts. Where some are missing: the first and last of each range, so a single one is there twice.
    Where the head is too old: its number, and that of the newest receipt."""


class ReceiptCheckForm(TypedDict):
    """`receipt verify`."""

    receipts: int
    first: int | None
    last: int | None
    key_ids: list[str]
    findings: list[FindingForm]
    is_sound: bool
    waiting: list[str]
    """Drafts of receipts in the home's topics that are not sealed yet; none of files that were named."""


class ExportedReceiptsForm(TypedDict):
    """`receipt export`."""

    folder: str
    receipts: int


class ForeignSegmentForm(TypedDict):
    """A segment that another program has brought in."""

    path: str
    base_offset: int
    last_offset: int
    records: int
    bytes: int


class NothingToRepairForm(TypedDict):
    """`repair`, where state and files belong together."""

    topic: str
    is_repaired: bool
    """Whether properties were written anew."""
    happened: None
    notes: list[str]
    """Properties beside the logs that could not be read; `--dry-run` only tells them."""
    broken: list[str]
    """What is damaged or gone, such as live files: no repair brings it back."""


class RepairForm(TypedDict):
    """`repair`."""

    topic: str
    is_repaired: bool
    is_adoption: bool
    happened: str
    foreign: list[str]
    belongs_to_snapshot: int | None
    current_snapshot: int | None
    files_back: list[str]
    files_gone: list[str]
    delete_files_gone: list[str]
    """Delete files of other programs, which hide records from readers."""
    lost_offsets: dict[str, list[list[int]]]
    """First and last of each range, by topic-partition."""
    is_lost_exact: bool
    foreign_segments: dict[str, list[ForeignSegmentForm]]
    other_columns: dict[str, int]
    """Columns that no topic has, with the number of values that adopted files have there: cleans drop them."""
    ended_erasures: list[str] | None
    """Verified requests below whose bounds adopted segments begin: records of their keys may be back. Null: nobody can
    tell. Those that ended more than 30 days ago are not among them."""
    undone_erasures: list[str] | None
    """Open requests that lose tombstones, or get back records that they have removed: ask for their keys anew with
    another id. Null: nobody can tell."""
    notes: list[str]
    """Properties beside the logs that were written anew before, for they could not be read."""
    broken: list[str]


class ConditionForm(TypedDict):
    """Something that is wrong."""

    condition: str
    subject: str
    topic: str | None
    since_ms: int
    text: str
    is_announced: bool
    told: list[str]


class MessageForm(TypedDict):
    """A message as it is sent."""

    id: str
    home: str
    title: str
    text: str
    events: list[dict[str, Any]]


class SentMessageForm(MessageForm):
    """A message that was sent."""

    way: str


class NotifiedForm(TypedDict):
    """`notify`, `notify --once`: a document for each look."""

    conditions: list[ConditionForm]
    sent: list[SentMessageForm]
    not_delivered: dict[str, str]


class NotifyLeftAloneForm(TypedDict):
    """`notify`, where another one is at work."""

    left_alone: str


class NotifyPreviewForm(TypedDict):
    """`notify --dry-run`."""

    conditions: list[ConditionForm]
    not_looked_at: list[str]
    """Why nobody could look where there was something to look at: that is neither fine nor wrong."""
    would_send: dict[str, list[MessageForm]]


class WayForm(TypedDict):
    """Whether a trial message arrived."""

    way: str
    place: str
    failed: str | None


class NotifyTrialForm(TypedDict):
    """`notify --test`."""

    ways: list[WayForm]


class ProbeForm(TypedDict):
    """A promise of a catalog, tried."""

    name: str
    promise: str
    answer: str
    """kept, broken or not_looked_at."""
    seen: str
    follows: str | None


class CatalogDoctorForm(TypedDict):
    """`doctor --catalog`."""

    catalog: str
    answer: str
    verdict: str
    probes: list[ProbeForm]
    hints: list[str]
    swept: list[str]
    left: list[str]


class ProblemForm(TypedDict):
    """What is wrong, why, and what to do next."""

    subject: str
    what: str
    cause: str
    todo: str
    command: str | None
    files: list[str]
    """All files to which something is to be done, where the text may name only some."""


class CheckUpForm(TypedDict):
    """One part of a home, looked at."""

    name: str
    asks: str
    diagnosis: str
    problems: list[ProblemForm]
    hints: list[ProblemForm]
    not_looked_at: list[str]


class HomeDoctorForm(TypedDict):
    """`doctor`."""

    home: str
    diagnosis: str
    checks: list[CheckUpForm]


class SparkArchiveForm(TypedDict):
    """`spark-archive`."""

    archive: str | None
    """Null with `--remove`."""
    bytes: int | None
    java: str | None
    spark: str | None
    removed: list[str]
    """With `--remove`."""


class SparkPackForm(TypedDict):
    """`spark-pack`."""

    archive: str
    python: str
    always: list[str]
    object_storage: list[str]
    kafka: list[str]
