"""The last act of a history: a file rots, or is gone, and nobody may be told that all is well.

Nothing else goes wrong then. A log with a damaged file fails ``verify``; a reader gets an error, or what he should get;
a clean lands, if at all, what it should: the ledger judges it as any other commit.
"""

from __future__ import annotations

import pyarrow as pa

from keptlog.errors import KeptlogError, LogCorrupt
from keptlog.passes.check import CHECKS
from keptlog.passes.verify import verify_log
from tests.sim.actors import append, clean
from tests.sim.book import Book, decoded
from tests.sim.faults import Known
from tests.sim.history import APPENDED, History
from tests.sim.world import Actor


def damage(history: History, actor: Actor) -> None:
    """Damage one file that a topic needs, and look at everything that is said of it."""
    world, book = history.world, history.ledger.book(actor.topic)
    if book is None or {Known.BIT_ROT, Known.MISSING_FILE} & world.known:
        return
    segments = sorted(path for files in book.files for path in files)
    others = sorted(history.ledger.needed_now(actor.topic) - set(segments))
    if Known.DAMAGED_METADATA in world.known:
        others = [path for path in others if path.endswith(".arrow")]
    candidates = segments if not others or (segments and world.chance.random() < 0.7) else others
    if not candidates:
        return
    path = candidates[world.chance.randrange(len(candidates))]
    how = _damage(history, book, path)
    world.tell(f"{path}: {how}")
    if not _is_harmless(history, path) and _is_green(history, actor):
        world.fail(f"{path}: {how}, and verify passes")
    _read(history, actor, book)
    if actor.topic == APPENDED:
        append(history, actor)
        clean(history, actor)


def _damage(history: History, book: Book, path: str) -> str:
    chance, disk = history.world.chance, history.storage.disk
    content = disk.files[path].content
    how = chance.choice(["a bit flipped", "a bit flipped", "a bit flipped", "cut off", "gone"])
    book.damaged[path] = how
    if how == "gone":
        disk.delete(path)
    elif how == "cut off":
        disk.rot(path, content[: chance.randrange(len(content))])
    else:
        position, bit = chance.randrange(len(content)), 1 << chance.randrange(8)
        disk.rot(path, content[:position] + bytes([content[position] ^ bit]) + content[position + 1 :])
    history.stores.clear()  # what a store remembers of manifests would hide it
    return how


def _is_harmless(history: History, path: str) -> bool:
    """Whether it gives what it gave: what hides a checksum is no part of the records; metadata are not looked into."""
    file = history.storage.disk.files.get(path)
    if file is None:
        return False
    try:
        return not path.endswith(".parquet") or decoded(file.content) == history.ledger.records(path)
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, KeptlogError):
        return False


def _is_green(history: History, actor: Actor) -> bool:
    """Whether every check of every log passes."""
    store = history.store(actor.host)
    try:
        return all(
            result.passed or check.warns_only
            for log in store.logs(actor.topic)
            for check, result in zip(CHECKS, verify_log(store, log, history.world.clock_ms), strict=True)
        )
    except KeptlogError as error:
        history.world.tell(f"{type(error).__name__}: {error}")
        return False


def _read(history: History, actor: Actor, book: Book) -> None:
    """What a reader gets as long as he gets something."""
    for partition in range(len(book.logs)):
        expected = book.visible(partition)
        found = []
        try:
            found += [record for _, record in history.store(actor.host).read(actor.topic, partition)]
        except KeptlogError as error:
            what = "is told" if isinstance(error, LogCorrupt) else "is told something else"
            history.world.tell(f"a reader {what}: {error}")
        else:
            if found != expected:
                history.world.fail(f"a reader of {actor.topic}-{partition} gets {len(found)} records, some are wrong")
