"""Receipts from when something was deleted until they are sealed: ``metadata/receipts/<id>.json``.

A draft is written durably before the journal of what it tells goes, so that nothing is gone without one. Then all
drafts that lie there are sealed together, which takes them into a chain outside of the topic's folder, and only after
that they are deleted. Who seals a draft again, because he was killed in between, finds it by its id; it is sealed once.

Where nobody can seal, the drafts stay, a warning says so, and the next purge seals them.

What can't be read is no draft, or only half of one: its writer was killed on a store that shows what he had written by
then. As long as the journal is there it is written again. Without one, once it is older than the grace, or if its
folder is about to go, it is **given up**: sealed as it is, so that what it tells is kept.

What an older keptlog has left there are receipts of formats 1.0 and 1.1. They become drafts like any other; what they
don't tell is null.
"""

from __future__ import annotations

import json
import logging
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from keptlog.errors import Action, InvalidConfig, LogCorrupt, StorageUnavailable
from keptlog.foreign_json import json_value
from keptlog.log.words.counted import counted
from keptlog.receipts.receipt import Draft
from keptlog.table.io.files import TableFiles
from keptlog.table.removal.journal import DELETION, SWEEP, DeletedFile, Journal, id_of, receipt_folder
from keptlog.table.removal.removal import NotDeleted, Removal
from keptlog.table.removal.topic_storage import drafts_among
from keptlog.table.waiting.reaching import one_line, why_unseen

_logger = logging.getLogger(__name__)

Seal = Callable[[Sequence[Draft]], object]
"""Takes drafts into the chain of receipts, each id once, durably; raises if it can't."""
PURGE = "purge"
_LEFT = "a purge seals it as it is once it is older than the grace; put it back from a copy if there is one"
_NO_DRAFT = (ValueError, KeyError, TypeError, AttributeError, InvalidConfig)
RETIRED, ORPHAN = "retired", "orphan"
"""Why a file went, beside ``topic-delete``."""


def in_turn(seal: Seal) -> Seal:
    """The same, one call after the other; topics that are purged side by side would only lose races to each other."""
    lock = threading.Lock()

    def sealed(drafts: Sequence[Draft]) -> object:
        with lock:
            return seal(drafts)

    return sealed


class Unsealed(NamedTuple):
    """Why drafts can't be sealed, in one line, and what is to be done about it: a damaged key stays damaged."""

    why: str
    action: Action


@dataclass(frozen=True, slots=True)
class Sealing:
    """What became of the drafts that lay there."""

    sealed: tuple[str, ...] = ()
    """Their ids."""
    waiting: tuple[str, ...] = ()
    """Ids of those that stay as drafts."""
    why: str = ""
    """Why some wait, in one line."""
    unreadable: tuple[str, ...] = ()
    """What is no draft, one line each; it is left where it is, unless it is given up."""
    not_deleted: tuple[NotDeleted, ...] = ()
    """Drafts that are sealed, and could not be deleted; to seal them again is no harm."""
    action: Action = Action.RETRY
    """What to do about those that wait."""

    def error(self, text: str) -> StorageUnavailable:
        """An error of those that wait."""
        error = StorageUnavailable(text)
        error.action = self.action
        return error

    def unsealed(self, topic: str) -> StorageUnavailable | None:
        """That some wait, although what they tell is gone, so that nobody could prove it; null if none does."""
        if not self.waiting:
            return None
        waiting = f"{counted(len(self.waiting), 'receipt')} can't be sealed ({self.why})"
        return self.error(f"topic {topic}: {waiting}; the next purge seals what waits")


def has_receipt(gone: Journal) -> bool:
    """Whether a receipt tells of it: not if it is metadata of expired snapshots alone, which every purge deletes."""
    return bool(gone.segments or (gone.kind in {SWEEP, DELETION} and gone.metadata))


def content_of(topic: str, topic_id: str, gone: Journal, **more: Any) -> dict[str, Any]:
    """What a receipt tells of files that are gone; ``more`` is what else there is to say.

    ``topic_id`` is whose they are where the journal does not say it.
    """
    why = {SWEEP: ORPHAN, DELETION: DELETION}.get(gone.kind, RETIRED)
    files = [_told(file) | {"why": why} for file in gone.segments + gone.metadata]
    whose = gone.table_uuid or topic_id
    return {"topic": topic, "table_uuid": whose, "expired_snapshots": list(gone.snapshots), "files": files} | more


def told_of_deletion(gone: Journal) -> dict[str, Any]:
    """What a receipt of a topic's deletion tells besides the files, whoever writes it."""
    ended = None if gone.erasures is None else [asdict(each) for each in gone.erasures]
    return {"erasures": ended, "held_files": None if gone.not_looked_at else []}


def done_draft(
    draft_id: str, kind: str, content: Mapping[str, Any], as_of_ms: int, done_ms: Callable[[int], int]
) -> Draft:
    """What is done by now; beside its time stands the one that it was judged by."""
    return Draft(draft_id, kind, done_ms(as_of_ms), {**content, "as_of_ms": as_of_ms})


def _told(file: DeletedFile) -> dict[str, Any]:
    return asdict(file)


def write_draft(files: TableFiles, location: str, draft: Draft) -> None:
    """Write a draft, durably; one of the same id is replaced."""
    text = json.dumps({"id": draft.id, "kind": draft.kind, "at_ms": draft.at_ms, "content": draft.content}, indent=1)
    files.write_bytes(f"{receipt_folder(location)}{draft.id}.json", text.encode())


def waiting_drafts(files: TableFiles, locations: Iterable[str]) -> list[str]:
    """Where the drafts of topics lie, sealed or not; OSError if a folder can't be listed."""
    listed = ((each, files.list(receipt_folder(each))) for each in locations)
    return [path for location, found in listed for path in drafts_among(location, (file.path for file in found))]


def read_draft(files: TableFiles, path: str) -> Draft:
    """Read a draft, or a receipt of format 1.0 or 1.1 as one.

    Raises:
        FileNotFoundError: it was sealed meanwhile.
        LogCorrupt: it is none.
    """
    content = files.read_bytes(path)
    try:
        return _draft(json_value(content), id_of(path))
    except _NO_DRAFT as error:
        raise LogCorrupt(f"{path} is no receipt ({one_line(error)})") from None


def is_draft(stored: object) -> bool:
    """Whether a value of JSON is what ``read_draft`` reads."""
    try:
        _draft(stored, PURGE)
    except _NO_DRAFT:
        return False
    return True


def _draft(stored: Any, file_id: str) -> Draft:
    if "purged_at_ms" in stored:
        return Draft(file_id, PURGE, stored["purged_at_ms"], _of_1_1(stored))
    return Draft(stored["id"], stored["kind"], stored["at_ms"], stored["content"])


def _of_1_1(stored: Mapping[str, Any]) -> dict[str, Any]:
    """What a receipt of format 1.0 or 1.1 tells, under today's names."""
    deleted = (DeletedFile(file["path"], file["bytes"]) for file in stored["deleted_files"])
    return {
        "topic": stored["topic"],
        "table_uuid": None,
        "expired_snapshots": stored["expired_snapshots"],
        "files": [_told(file) | {"why": RETIRED} for file in deleted],
        "not_deleted": [],
        "held_files": stored.get("held_files"),
    }


def seal_drafts(
    files: TableFiles, topic: str, paths: Iterable[str], seal: Seal | None, given_up_at_ms: Mapping[str, int]
) -> Sealing:
    """Seal the drafts that lie there, and then delete them; whatever goes wrong with it, nothing of them is lost.

    ``given_up_at_ms`` has paths: what can't be read there is sealed as it is, as of that time. Any other stays.
    """
    drafts: dict[str, Draft] = {}
    unreadable: list[str] = []
    for path in paths:
        try:
            drafts[path] = read_draft(files, path)
        except FileNotFoundError:
            continue
        except LogCorrupt as error:
            if path not in given_up_at_ms:
                unreadable.append(f"{error}; {_LEFT}")
                continue
            drafts[path] = _unreadable_draft(topic, path, files.read_bytes(path), given_up_at_ms[path])
            unreadable.append(f"{error}; it is sealed as it is, in receipt {drafts[path].id}")
    ids = tuple(draft.id for draft in drafts.values())
    if ids and (refused := why_not_sealed(list(drafts.values()), seal)):
        sealing = Sealing((), ids, refused.why, tuple(unreadable), action=refused.action)
        _logger.warning("%s", sealing.unsealed(topic))
        return sealing
    removal = Removal(files, "", again="try again")
    for path in drafts:
        removal.delete_file(path)
    return Sealing(ids, (), "", tuple(unreadable), removal.refused)


def given_up_drafts(location: str, old: Iterable[str], journals: Iterable[str], now_ms: int) -> dict[str, int]:
    """Of old files those drafts that nobody is about to write to their end: the journals of their ids are gone."""
    coming = set(map(id_of, journals))
    return {path: now_ms for path in drafts_among(location, old) if id_of(path) not in coming}


def _unreadable_draft(topic: str, path: str, content: bytes, at_ms: int) -> Draft:
    """By its place and content: it is sealed once, and so is another one that is as empty."""
    text = content.decode("ascii", "backslashreplace")
    checksum = zlib.crc32(content, zlib.crc32(path.encode()))
    return Draft(f"unreadable-{checksum:08x}", PURGE, at_ms, {"topic": topic, "unreadable": text})


def why_not_sealed(drafts: Sequence[Draft], seal: Seal | None) -> Unsealed | None:
    """Seal drafts; gives why they can't be, null if they are."""
    if seal is None:
        return Unsealed("no chain of receipts is open", Action.RETRY)
    try:
        seal(drafts)
    except Exception as error:  # noqa: BLE001  # whatever is wrong with the chain, what was deleted is deleted
        return Unsealed(one_line(error), why_unseen("", error).action)
    return None
