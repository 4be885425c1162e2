"""Erasure: what is asked for, brought on, and told, topic by topic (what that is: ``keptlog.log.erasures.erasure``).

    proposed --> asked for: one commit a topic --> brought on by cleans and purges --> verified
      |                                               |
      data; changes nothing                           looked at, again and again: ``advance`` commits what is new

Topics are asked one by one. One that is broken is named, the others get theirs, and the same request again does what is
left. ``advance`` never cleans or purges anything itself: it sees how far those have come, and for ingested topics
whether a deletion has arrived from the source.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from keptlog.errors import (
    InvalidConfig,
    KeptlogError,
    LogCorrupt,
    NoStoreClient,
    StorageUnavailable,
    UnknownTopic,
    UnsupportedFormat,
)
from keptlog.log.erasures.erasure import Erasure, ErasureState, ErasureWay, dated_by, reached
from keptlog.log.given.given import byte_string, texts
from keptlog.log.given.given_time import passed_now_ms
from keptlog.log.holder import PURGE_INTERVAL_MS
from keptlog.log.run_id import valid_run_id
from keptlog.log.words.counted import counted
from keptlog.log.words.iso_time import iso_time
from keptlog.passes.drop import Dropper
from keptlog.passes.erasures.asked_before import AskedBefore
from keptlog.passes.erasures.erase_look import TopicLook
from keptlog.passes.erasures.erase_topic import TopicErasure
from keptlog.passes.erasures.erase_verify import Verification
from keptlog.passes.erasures.erasure_request import (
    NOTHING_ASKED,
    ErasureList,
    ErasureProposal,
    ErasureRequest,
    ErasureResult,
    ErasureRow,
    TopicProposal,
    refuse_unknown_ids,
    require_keys,
)
from keptlog.passes.erasures.key_text import names_hashed_key, names_key, quotes
from keptlog.passes.erasures.lost_topics import requests_of_lost_topics
from keptlog.passes.names import require_topics
from keptlog.progress import Progress, silent
from keptlog.storage.erasure_secret import require_own_hashes, require_secret
from keptlog.table.changes.erasures import RegisterChange
from keptlog.table.metadata.state import read_open_erasures, remembers_erasures
from keptlog.table.removal.erasure_look import current_snapshot_of, read_register
from keptlog.table.waiting.reach import OUT_OF_REACH, unavailable

if TYPE_CHECKING:
    from keptlog.engine.engine import Engine
    from keptlog.storage.erasure_secret import LoadHasher
    from keptlog.storage.key_hash import KeyHasher
    from keptlog.table.chain.receipt_files import ReceiptFiles
    from keptlog.table.commits.topics import Topic
    from keptlog.table.store import LogStore

_logger = logging.getLogger(__name__)


def first_secret(store: LogStore, make: Callable[[], bytes]) -> bytes:
    """The secret of a home that never had one; what is asked with a second one can't be proved beside the rest.

    A topic that can't be read holds up no erasure of others, but a line says that it was not looked at.

    Raises:
        InvalidConfig: a topic has erasures that were made with one that is not here.
        StorageUnavailable: nobody can tell; a single topic that is refused tells as little as one that is damaged.
    """
    refusal, is_any_read = None, False
    unread: list[str] = []
    for topic in store.topics():
        try:
            count = read_open_erasures(topic, store.load_table(topic).properties).count
        except UnknownTopic:
            continue  # it was deleted meanwhile
        except (LogCorrupt, NoStoreClient, UnsupportedFormat):
            unread.append(topic)
            continue
        except StorageUnavailable as error:
            if not error.is_refused:
                raise
            unread.append(topic)
            refusal = error
            continue
        is_any_read = True
        if count:
            raise InvalidConfig(
                f"this home has no erasure secret, and topic {topic} has {counted(count, 'open erasure')}: put "
                "erasure.secret back from a backup, or take that of the home that asked, or give KEPTLOG_ERASURE_SECRET"
            )
    if refusal and not is_any_read:
        raise refusal
    secret = make()
    if unread:
        text = (
            "this home had no erasure secret, so a new one was made, and it is not known whether %s has open erasures, "
            "for it can't be read: if it has, put the secret back with which they were made before you ask for more"
        )
        _logger.warning(text, " or ".join(f"topic {topic}" for topic in unread))
    return secret


@dataclass(frozen=True)
class Eraser:
    """Erases keys from the topics of one store.

    ``load_hasher`` is called when keys are to be hashed or looked for, not before. It makes the home's secret when a
    hash is handed out or stored for the first time.
    """

    store: LogStore
    engine: Engine
    """Looks files through, and drops records; nothing else starts Spark."""
    load_hasher: LoadHasher = field(repr=False)
    """It may hold the environment, and all secrets in it."""
    new_id: Callable[[], str]
    purge_interval_ms: int = PURGE_INTERVAL_MS
    require_key: Callable[[], object] = field(default=lambda: None, repr=False)
    """Raises if no receipt could be signed, and makes no key, as nothing may come of it; asked before files are looked
    through, for without it nothing is proved. It may hold the environment, too."""
    list_receipts: Callable[[], ReceiptFiles] | None = field(default=None, repr=False)
    """The receipts of what was proved before; null where nothing seals."""

    def hash_of(self, key: bytes) -> str:
        """The keyed hash of a key, with its secret's fingerprint: it may stand in a configuration in place of the key.

        Raises:
            InvalidConfig: the key is no bytes; the home is a copy, or was moved; or it has lost its secret.
        """
        key = byte_string(key, "the key")
        self.store.require_writable()
        return str(self.load_hasher().told(key))

    def propose(self, request: ErasureRequest, *, now_ms: int, is_new: bool = False) -> ErasureProposal:
        """What a request would do; changes nothing.

        ``is_new`` is of whoever has just made its id, under which nobody has asked before: no receipt is looked for.

        Raises:
            InvalidConfig: it has no topics or keys, a deadline that has passed, a key in its id or reason, or a hash of
                another secret; or the home is a copy, or was moved, so that it could not be asked for here.
            UnknownTopic: there is no such topic.
        """
        now_ms = passed_now_ms(now_ms)
        self.store.require_writable()
        hasher = self.load_hasher(is_kept=False)
        self._require_sound(request, hasher)
        topics: dict[str, TopicProposal] = {}
        failed: dict[str, KeptlogError] = {}
        before = AskedBefore(request.id, self.list_receipts) if self.list_receipts and not is_new else None
        for topic in dict.fromkeys(request.topics):
            try:
                asked = self._erasure(request, topic, hasher, now_ms)
                proposed = asked.propose()
                if before and not proposed.is_repeated:
                    before.require_new(asked.topic)
                topics[topic] = proposed
            except Exception as error:  # noqa: BLE001  # whatever is wrong with a topic, it is nothing to the others
                failed[topic] = _reason(topic, error, request.keys)
        topics, failed = _without_late(request, topics, failed, now_ms)
        key_count = len({*request.hashes, *hasher.hashes(request.keys)})
        return ErasureProposal(request, key_count, topics, failed)

    def request(self, proposal: ErasureProposal, *, now_ms: int, progress: Progress = silent) -> ErasureResult:
        """Ask for it: in each topic one commit, with its tombstones if it takes any. The same id again does no harm.

        Raises:
            InvalidConfig: the home is a copy, or was moved.
        """
        now_ms = passed_now_ms(now_ms)
        self.store.require_writable()
        request, hasher = proposal.request, self.load_hasher()
        erasures: dict[str, Erasure] = {}
        failed = dict(proposal.failed)
        for topic, proposed in proposal.topics.items():
            progress(f"erasing {counted(proposal.key_count, 'key')} from {topic}")
            try:
                asked = self._erasure(request, topic, hasher, now_ms)
                erasures[topic] = asked.ask(proposed)
                if proposed.way is ErasureWay.HERE:
                    erasures[topic] = self._dropped(asked.topic, erasures[topic], now_ms, progress)
            except Exception as error:  # noqa: BLE001  # whatever is wrong with a topic, it is nothing to the others
                failed[topic] = _reason(topic, error, request.keys)
        repeated = frozenset(topic for topic, each in proposal.topics.items() if each.is_repeated)
        return ErasureResult(request.id, erasures, repeated, failed)

    def advance(self, topics: Iterable[str] = (), *, now_ms: int) -> ErasureList:
        """Look how far the open erasures of these topics are, all if none is named, and remember it.

        A topic without open erasures costs a look at its properties.
        """
        return self._looked_at(topics, now_ms, with_ended=False)

    def list(self, topics: Iterable[str] = (), *, ids: Iterable[str] = (), now_ms: int) -> ErasureList:
        """All erasures of these topics that are remembered, or those with these ids; the open ones as they are now."""
        ids, topics = texts(ids, "the ids of erasures"), texts(topics, "the topics of erasures")
        found = self._looked_at(topics, now_ms, with_ended=True).of(ids)
        lost = {} if topics else requests_of_lost_topics(self.store, ids)
        return ErasureList(_naming_secret(found.rows, self.load_hasher), {**found.failed, **lost})

    def verify(
        self, ids: Iterable[str] = (), topics: Iterable[str] = (), *, now_ms: int, progress: Progress = silent
    ) -> ErasureList:
        """Look through every file of the topics whose erasures are ``deleted``, and end those of which nothing is left.

        Raises:
            InvalidConfig: no such request, where all topics can be read; the home is a copy, or was moved.
        """
        now_ms = passed_now_ms(now_ms)
        self.store.require_writable()
        ids = texts(ids, "the ids of erasures")
        topics = texts(topics, "the topics of erasures")
        found = self._looked_at(topics, now_ms, with_ended=True)
        failed = {**found.failed, **({} if topics else requests_of_lost_topics(self.store, ids))}
        refuse_unknown_ids(ids, ErasureList(found.rows, failed))
        rows = list(found.rows)
        by_topic: dict[str, list[int]] = {}
        for index, row in enumerate(rows):
            if _is_to_be_verified(row) and (not ids or row.id in ids):
                by_topic.setdefault(row.topic, []).append(index)
        for topic, indices in by_topic.items():
            try:
                hasher = self.load_hasher()
                self.require_key()
                progress(f"looking through the files of {topic}")
                verification = Verification(self.store, topic, hasher, self.engine, now_ms)
                done = verification.verify([rows[index] for index in indices], f"verify-{self.new_id()}")
                self._remember(topic, [row.erasure for row in done], now_ms)
                for index, row in zip(indices, done, strict=True):
                    rows[index] = row
            except Exception as error:  # noqa: BLE001  # whatever is wrong with a topic, it is nothing to the others
                failed[topic] = _reason(topic, error)
        return ErasureList(tuple(rows), failed)

    def _require_sound(self, request: ErasureRequest, hasher: KeyHasher) -> None:
        valid_run_id(request.id)
        require_keys(request)
        if not request.topics:
            raise InvalidConfig("there is no topic to erase from: name one")
        require_own_hashes(hasher, request.told_hashes)
        for what, text in (("id", request.id), ("reason", request.reason)):
            if names_key(text, request.keys) or names_hashed_key(text, request.hashes, hasher):
                raise InvalidConfig(f"the {what} has a key in it, and would be stored: give one without")
        require_topics(request.topics, self.store.topics(), NOTHING_ASKED)

    def _erasure(self, request: ErasureRequest, topic: str, hasher: KeyHasher, now_ms: int) -> TopicErasure:
        described = self.store.describe_topic(topic)
        return TopicErasure(
            self.store, request, hasher, described, self.new_id, now_ms, self.purge_interval_ms, self.engine
        )

    def _dropped(self, topic: Topic, erasure: Erasure, now_ms: int, progress: Progress) -> Erasure:
        """The erasure once its records are dropped; again it finds nothing to drop."""
        if erasure.has_reached(ErasureState.COMPACTED):
            return erasure
        hashes = [bytes.fromhex(each) for each in erasure.key_hashes]
        ends = {each.partition: dict.fromkeys(hashes, each.end_offset) for each in erasure.bounds}
        dropper = Dropper(self.store, self.engine, self.load_hasher())
        dropper.drop(topic, ends, erasure.id, now_ms=now_ms, progress=progress)
        gone = current_snapshot_of(self.store.load_table(topic.name))
        done_ms = self.store.done_ms(now_ms)
        done = replace(reached(dated_by(erasure, done_ms), ErasureState.COMPACTED, done_ms), gone=gone)
        self._remember(topic.name, [done], now_ms)
        return done

    def _looked_at(self, topics: Iterable[str], now_ms: int, *, with_ended: bool) -> ErasureList:
        now_ms = passed_now_ms(now_ms)
        named, known = list(dict.fromkeys(texts(topics, "the topics of erasures"))), self.store.topics()
        require_topics(named, known)
        rows: list[ErasureRow] = []
        failed: dict[str, KeptlogError] = {}
        for topic in named or known:
            try:
                rows += self._rows(topic, now_ms, failed, with_ended=with_ended)
            except Exception as error:  # noqa: BLE001  # whatever is wrong with a topic, it is nothing to the others
                # Without names, a topic that was deleted just now is simply not there.
                if named or not isinstance(error, UnknownTopic):
                    failed[topic] = _reason(topic, error)
        return ErasureList(tuple(rows), failed)

    def _rows(
        self, topic: str, now_ms: int, failed: dict[str, KeptlogError], *, with_ended: bool
    ) -> Sequence[ErasureRow]:
        properties = self.store.load_table(topic).properties
        if not remembers_erasures(topic, properties) or not (with_ended or read_open_erasures(topic, properties).count):
            return ()
        known = read_register(self.store.files, lambda: self.store.load_table(topic))
        still_open = [each for each in known if each.is_open]
        looked: Mapping[str, ErasureRow] = {}
        try:
            if still_open:
                waits = any(each.waiting for each in still_open)
                look = TopicLook(self.store, topic, now_ms, self.load_hasher() if waits else None)
                looked = {row.id: row for row in look.look(known)}
            is_new = any(looked[each.id].erasure != each for each in still_open)
            if (is_new or not _are_counted(topic, properties, len(still_open))) and not self.store.read_only:
                self._remember(topic, [row.erasure for row in looked.values()], now_ms, list(looked.values()))
        except Exception as error:  # noqa: BLE001  # what is remembered is told, whatever the look stops at
            failed[topic] = _reason(topic, error)
        rows = [looked.get(each.id) or ErasureRow(topic, each) for each in known]
        return rows if with_ended else [row for row, each in zip(rows, known, strict=True) if each.is_open]

    def _remember(self, topic: str, erasures: Sequence[Erasure], now_ms: int, rows: Sequence[ErasureRow] = ()) -> None:
        """Commit what is new; with the rows of a look it is known when there is next something to do, else now."""
        described = self.store.describe_topic(topic)
        store = self.store
        change = RegisterChange(described, store.committer, store.files, self.new_id, now_ms, store.done_ms)
        moments = [row.next_ms for row in rows if row.next_ms is not None and row.erasure.is_open]
        by_id = {each.id: each for each in erasures}
        change.update(by_id, min(moments, default=None) if rows else now_ms)


def _are_counted(topic: str, properties: Mapping[str, str], count: int) -> bool:
    """Whether so many count as open for who reads none of them; an older keptlog counted those of no key as well."""
    with contextlib.suppress(LogCorrupt):  # it is told by whoever needs it
        return read_open_erasures(topic, properties).count == count
    return True


def _is_to_be_verified(row: ErasureRow) -> bool:
    return row.erasure.is_open and row.erasure.state is ErasureState.DELETED


def _naming_secret(rows: tuple[ErasureRow, ...], load_hasher: LoadHasher) -> tuple[ErasureRow, ...]:
    """The rows, with what is wrong with the secret where the verification is next, which would be refused for it."""
    if not any(map(_is_to_be_verified, rows)):
        return rows
    try:
        hasher, why = load_hasher(is_kept=False), ""
    except (InvalidConfig, StorageUnavailable) as error:
        if isinstance(error.__cause__, PermissionError):
            return rows  # Who may not read it verifies nothing, and it keeps nobody else from that.
        hasher, why = None, str(error)
    return tuple(_kept_by_secret(row, hasher, why) if _is_to_be_verified(row) else row for row in rows)


def _kept_by_secret(row: ErasureRow, hasher: KeyHasher | None, why: str) -> ErasureRow:
    try:
        if hasher:
            require_secret(hasher, row.erasure.fingerprint, f"topic {row.topic}: request {row.id}")
    except InvalidConfig as error:
        why = str(error)
    return replace(row, blocked=(*row.blocked, why)) if why else row


def _without_late(
    request: ErasureRequest, topics: dict[str, TopicProposal], failed: dict[str, KeptlogError], now_ms: int
) -> tuple[dict[str, TopicProposal], dict[str, KeptlogError]]:
    """Who would be asked anew after the deadline has failed; a topic that has the request goes on, however late.

    Raises:
        InvalidConfig: that is so of all topics.
    """
    if request.deadline_ms is None or request.deadline_ms > now_ms:
        return topics, failed
    repeated = {topic: each for topic, each in topics.items() if each.is_repeated}
    late = InvalidConfig(f"the deadline {iso_time(request.deadline_ms)} has passed: give a later one")
    if topics and not repeated and not failed:
        raise late
    return repeated, failed | {topic: late for topic in topics if topic not in repeated}


def _reason(topic: str, error: Exception, keys: Iterable[bytes] = ()) -> KeptlogError:
    """The error as callers know it, without any of the keys; one that nobody has thought of says just which topic."""
    told = error if isinstance(error, KeptlogError) else None
    if isinstance(error, OUT_OF_REACH):
        told = unavailable(f"topic {topic}: its erasures can't be looked after", error)
    # What others have written may quote a key, also where an error of ours repeats it.
    is_ours = told is error and error.__cause__ is None
    if told is not None and (is_ours or not quotes(str(told), keys)):
        return told
    kind = KeptlogError if told is None else type(told)
    again = "ask again with the same id, and report it if it stays"
    return kind(f"topic {topic}: stopped at a {type(error).__name__}; {again}")
