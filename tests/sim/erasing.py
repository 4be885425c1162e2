"""Erasure in a simulated world: requests, looks at them, and what must hold of each state that one is said to be in.

    asked         in one commit: a tombstone of each key, or in an ingested topic the request alone, and then a drop
    compacted     no record of the keys below their bounds is in the log, but tombstones
    gone          ... nor they
    verified      nor in any file below the topic's location

The commits themselves are judged by the ledger, like all others (``book``).
"""

from __future__ import annotations

from keptlog.errors import KeptlogError
from keptlog.log.erasures.erasure import Erasure, ErasureState
from keptlog.log.record import Record
from keptlog.passes.erasures.erase import Eraser
from keptlog.passes.erasures.erasure_request import ErasureRequest, ErasureRow
from keptlog.storage.key_hash import KeyHasher
from tests.sim.book import Book, Erasing, decoded
from tests.sim.history import INGESTED, KEYS, History
from tests.sim.world import Actor

HASHER = KeyHasher(b"secret")
_DEADLINE_DAYS = 99


def erase(history: History, actor: Actor) -> None:
    """Ask that one or two keys be gone; or ask again what was asked before, whatever became of it."""
    world, book = history.world, history.ledger.book(actor.topic)
    if book is None:
        return
    request_id, keys = f"erase{world.new_id()}", frozenset(world.chance.choices(KEYS, k=2))
    if book.asked and world.chance.random() < 0.3:
        request_id = list(book.asked)[world.chance.randrange(len(book.asked))]
    book.asked.setdefault(request_id, Erasing(actor.topic, keys))
    _ask(history, actor, book, request_id)


def press(history: History, actor: Actor) -> None:
    """An operator who wants open requests to end: he asks again, and takes away what puts them off."""
    world, book, store = history.world, history.ledger.book(actor.topic), history.store(actor.host)
    if book is None:
        return
    for row in open_erasures(history, actor.topic):
        _ask(history, actor, book, row.id)
    for path, _ in history.storage.disk.below(f"{book.location}/metadata/receipts/unreadable"):
        history.storage.disk.delete(path)  # as every blocked request says
    settings = {"cleanup.policy": "compact", "keptlog.watermark.retention.ms": str(world.pace.hour_ms)}
    history.attempt(lambda: store.alter_topic(actor.topic, settings))


def _ask(history: History, actor: Actor, book: Book, request_id: str) -> None:
    world, intent, eraser = history.world, book.asked[request_id], _eraser(history, actor)
    history.ledger.intents[request_id] = intent
    request = ErasureRequest(
        request_id,
        [actor.topic],
        sorted(intent.keys),
        deadline_ms=world.clock_ms + _DEADLINE_DAYS * world.pace.day_ms,
        is_here=actor.topic == INGESTED,
    )
    done, _ = history.attempt(
        lambda: eraser.request(eraser.propose(request, now_ms=world.clock_ms), now_ms=world.clock_ms)
    )
    if done is None:
        return
    _judge(history, *done.failed.values())
    if done.erasures and not intent.ends and not book.is_gone:
        world.fail(f"request {request_id} is acknowledged, and never landed")


def verify_erasures(history: History, actor: Actor) -> None:
    """Look how far all requests are, and end those of which nothing is left, while nobody else goes on."""
    world, book = history.world, history.ledger.book(actor.topic)
    if book is None or not history.is_alone(actor):
        return
    world.alone = actor
    done, _ = history.attempt(lambda: _eraser(history, actor).verify([], [actor.topic], now_ms=world.clock_ms))
    if done is None:
        return
    _judge(history, *done.failed.values())
    for row in done.rows:
        world.tell(f"{row.id} is {row.erasure.state}: {row.blocked}")
        _require_as_told(history, book, row.erasure)
        if not row.erasure.is_open and row.id not in book.verified:
            book.verified[row.id] = None
            _require_nowhere(history, book, book.asked[row.id])


def open_erasures(history: History, topic: str) -> list[ErasureRow]:
    """The requests of a topic that have not ended."""
    with history.world.quiet():
        eraser = Eraser(history.store(0), history.engine(0), lambda **_: HASHER, history.world.new_id)
        return [row for row in eraser.list([topic], now_ms=history.world.now_ms).rows if row.erasure.is_open]


def _eraser(history: History, actor: Actor) -> Eraser:
    store = history.store(actor.host)
    return Eraser(store, history.engine(actor.host), lambda **_: HASHER, history.world.new_id)


def _judge(history: History, *errors: KeptlogError) -> None:
    history.judge(*errors)
    for error in errors:
        if type(error) is KeptlogError:
            history.world.fail(f"an erasure ends with what nobody has thought of: {error} from {error.__context__!r}")


def _require_as_told(history: History, book: Book, erasure: Erasure) -> None:
    asked = book.asked[erasure.id]
    bounds = {each.partition: each.end_offset for each in erasure.bounds}
    if asked.ends and bounds != asked.ends:
        history.world.fail(f"{erasure.id} is bound to {bounds}, and the logs ended at {asked.ends}")
    below = [record for partition in asked.ends for record in _below(asked, partition, book.visible(partition))]
    values = [record for record in below if not record.is_tombstone]
    if erasure.has_reached(ErasureState.COMPACTED) and values:
        history.world.fail(f"{erasure.id} is {erasure.state}, and the log has {values}")
    if erasure.gone is not None and below:
        history.world.fail(f"{erasure.id}: its records are said to be gone, and the log has {below}")


def _require_nowhere(history: History, book: Book, asked: Erasing) -> None:
    for path, file in history.storage.disk.below(book.location):
        if path.endswith(".parquet"):
            partition = int(path.partition("/partition=")[2].partition("/")[0])
            left = _below(asked, partition, decoded(file.content))
            if left:
                history.world.fail(f"an erasure of {sorted(asked.keys)} is verified, and {path} has {left}")


def _below(asked: Erasing, partition: int, records: list[Record] | tuple[Record, ...]) -> list[Record]:
    end = asked.ends[partition]
    return [record for record in records if record.key in asked.keys and record.offset < end]
