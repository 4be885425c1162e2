"""What is asked of an eraser, and what it answers: requests, proposals, results. No text of them holds a key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from keptlog.errors import InvalidConfig, KeptlogError
from keptlog.log.erasures.erasure import Erasure, ErasureState, ErasureWay
from keptlog.log.erasures.erasure_deadline import Hindrance
from keptlog.log.given.given import byte_strings, text, texts, whole_number
from keptlog.log.search import FileFindings
from keptlog.log.words.iso_time import iso_time
from keptlog.storage.key_hash import TOLD_FORM, ToldHash, told_hash

NOTHING_ASKED = "; nothing was asked for"
"""Ends the message where a topic of a request is not there."""
OF_NO_KEY = (
    "it was made for no key, so it has erased nothing, and a receipt of it proves nothing: nobody waits for it; ask "
    "for the keys under another id"
)
"""What is told of an erasure that an older keptlog took in without a key."""

NEVER_MS = 2**63
"""The deadline of what has none, where lists are sorted by it."""


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """That no record of these keys, as the topics stand now, is anywhere in them from the deadline on.

    Keys are given as they are or as keyed hashes (``Eraser.hash_of``); a key that is given as its hash is looked for in
    the topic. The same id asks for nothing twice. Topics, keys and hashes are copied: a list that is changed afterwards
    changes no request.
    """

    id: str
    topics: Sequence[str]
    keys: Sequence[bytes] = field(default=(), repr=False)
    key_hashes: Sequence[str] = field(default=(), repr=False)
    """With the fingerprint of the secret that made them; one of another secret is refused."""
    deadline_ms: int | None = None
    """Null for what each topic promises by itself."""
    reason: str = ""
    is_here: bool = False
    """Ingested topics: drop the records here, whatever the source still has."""

    def __post_init__(self) -> None:
        """Raises InvalidConfig if a part of it is of another type, or a hash is none."""
        object.__setattr__(self, "topics", texts(self.topics, "the topics of an erasure"))
        object.__setattr__(self, "keys", byte_strings(self.keys, "the keys of an erasure"))
        text(self.reason, "the reason of an erasure")
        if self.deadline_ms is not None:
            object.__setattr__(self, "deadline_ms", whole_number(self.deadline_ms, "deadline_ms"))
        if isinstance(self.key_hashes, Iterable):  # what else it is, is told below
            object.__setattr__(self, "key_hashes", tuple(self.key_hashes))
        _ = self.told_hashes

    @property
    def told_hashes(self) -> list[ToldHash]:
        """What ``key_hashes`` say."""
        try:
            return [told_hash(each) for each in self.key_hashes]
        except (TypeError, ValueError):
            raise InvalidConfig(f"an entry of key_hashes is no keyed hash: give {TOLD_FORM}") from None

    @property
    def hashes(self) -> frozenset[bytes]:
        """The hashes alone."""
        return frozenset(each.key_hash for each in self.told_hashes)


def require_keys(request: ErasureRequest) -> None:
    """Refuse a request of no key: it would be kept at once, and proved by a search for nothing.

    Raises:
        InvalidConfig: it has none.
    """
    if not request.keys and not request.key_hashes:
        raise InvalidConfig("there is no key to erase: give one")


@dataclass(frozen=True, slots=True)
class TopicProposal:
    """What a request would do to one topic."""

    topic: str
    way: ErasureWay
    deadline_ms: int | None
    """Null if nobody gave one and the topic promises none; ``no_promise`` says why."""
    no_promise: str | None
    earliest_ms: int
    """When it can be done at the earliest, if nothing more is appended."""
    latest_ms: int
    """The same if the keys are in the slowest of the logs that they may be in, or were deleted lately."""
    hindrances: tuple[Hindrance, ...]
    """What makes the deadline impossible, or unsure."""
    is_repeated: bool = False
    """Whether the topic has this request already; then nothing would be done."""


@dataclass(frozen=True, slots=True)
class ErasureProposal:
    """What a request would do; nothing was changed."""

    request: ErasureRequest
    key_count: int
    topics: Mapping[str, TopicProposal]
    failed: Mapping[str, KeptlogError]
    """Topic to the reason why it can't be asked."""


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """What a request has done."""

    id: str
    erasures: Mapping[str, Erasure]
    """By topic, as the register has them now."""
    repeated: frozenset[str]
    """The topics that had the request already."""
    failed: Mapping[str, KeptlogError]
    """Topic to the error: nothing was done there, and the same request again does it. Or, if it is among ``erasures``
    too, it is asked for, and what was to follow at once failed."""


@dataclass(frozen=True, slots=True)
class ErasureRow:
    """An erasure in one topic, as it was found just now."""

    topic: str
    erasure: Erasure
    next_ms: int | None = None
    """The earliest time of its next state, past if it waits for a pass; null if only data can bring it on."""
    blocked: tuple[str, ...] = ()
    """What keeps it from its next state, besides time: each with what to do."""
    is_verified_now: bool = False
    """Whether this call has ended it."""
    is_by_age: bool = False
    """Whether retention takes what it waits for before a clean can."""
    next_setting: str | None = None
    """By which that time is so late; null if by none."""

    def __post_init__(self) -> None:
        """One of no key is told as that, and nothing brings it on: every search would find nothing of it."""
        if not self.erasure.key_hashes:
            object.__setattr__(self, "blocked", (OF_NO_KEY,))
            object.__setattr__(self, "next_ms", None)

    @property
    def id(self) -> str:
        return self.erasure.id

    def urgency(self, now_ms: int) -> tuple[bool, int, str, str]:
        """By which lists are sorted: the open ones by their deadlines, then those that have ended, newest first.

        Behind them are those of no key: nobody waits for them, and they never end.
        """
        erasure = self.erasure
        if erasure.is_open:
            return False, NEVER_MS if erasure.deadline_ms is None else erasure.deadline_ms, self.topic, self.id
        return True, NEVER_MS if erasure.ended_ms is None else now_ms - erasure.ended_ms, self.topic, self.id

    def next_told(self, now_ms: int, time_told: Callable[[int], str] = iso_time) -> str | None:
        """The earliest time of its next state, or what brings it on once that has come; null if only data can."""
        if not self.erasure.is_open or self.next_ms is None:
            return None
        return self._brought_on_by if self.next_ms <= now_ms else time_told(self.next_ms)

    def kept_by(self, now_ms: int) -> str | None:
        """The setting that keeps it from its next state until that time; null if none does."""
        is_waiting = self.erasure.is_open and self.next_ms is not None and self.next_ms > now_ms
        return self.next_setting if is_waiting else None

    @property
    def _brought_on_by(self) -> str:
        state, way = self.erasure.state, self.erasure.way
        retention = f"retention (keptlog retain {self.topic})"
        if self.is_by_age:
            return retention
        if state is ErasureState.TOMBSTONED:
            return {ErasureWay.RETENTION: retention, ErasureWay.HERE: "the same request again"}.get(
                ErasureWay(way), "a clean"
            )
        if state is ErasureState.COMPACTED and self.erasure.gone is None:
            return "a clean, then a purge"
        return {ErasureState.REQUESTED: "the next look", ErasureState.DELETED: "erasure verify"}.get(state, "a purge")


@dataclass(frozen=True, slots=True)
class ErasureList:
    """Erasures of some topics, by topic and age."""

    rows: tuple[ErasureRow, ...]
    failed: Mapping[str, KeptlogError]
    """Topic to the reason why its erasures are not known, or could not be brought on."""

    def of(self, ids: Collection[str]) -> ErasureList:
        """Those with these ids, all if none is given; what could not be looked at may have them too."""
        return replace(self, rows=tuple(row for row in self.rows if not ids or row.id in ids))

    def overdue(self, now_ms: int) -> list[ErasureRow]:
        """Those whose deadline has passed."""
        return [row for row in self.rows if row.erasure.is_overdue(now_ms)]


@dataclass(frozen=True, slots=True)
class ErasureProof:
    """What was found when an erasure was verified: what its receipt is made of."""

    topic: str
    topic_id: str
    erasure: Erasure
    searched: tuple[FileFindings, ...] = field(repr=False)
    """Every file below the topic's location, each without a record of the keys below the bound."""
    snapshots: tuple[int, ...]
    """The ids of all that the table had then, the current one last."""
    not_looked_at: tuple[str, ...]
    """Why nobody knows whether the store keeps more, in one line each."""
    as_of_ms: int
    """By when it was judged."""
    verified_ms: int
    """By the clock, after the last look; no state was reached after it (``dated_by``)."""


def refuse_unknown_ids(ids: Iterable[str], found: ErasureList) -> None:
    """Refuse an id that no topic knows; none while a topic can't be read, for it may be the one that does.

    Raises:
        InvalidConfig: the first such id.
    """
    if found.failed:
        return
    known = {row.id for row in found.rows}
    for each in ids:
        if each not in known:
            raise InvalidConfig(
                f"there is no erasure {each!r}: see keptlog erasure list; receipts have those that ended "
                f"(keptlog receipt list --request {each!r})"
            )
