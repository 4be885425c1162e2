"""The programs of a history. Each is a function of the history and of the actor that it is.

All of it is the real code; an actor only decides what is called, and holds what comes back against the ledger: what is
acknowledged has landed, what is refused has not, and what is unknown is asked again with the same run id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from keptlog.ingest.ingest_pass import Ingest
from keptlog.log.steps import Compact, Expire
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.check import CHECKS
from keptlog.passes.names import named_logs
from keptlog.passes.purge import Purger
from keptlog.passes.retain import Retainer
from keptlog.passes.verify import verify_log
from tests.sim.book import Appending, Cleaning, Deleting, Ingesting, Retaining
from tests.sim.erasing import erase, verify_erasures
from tests.sim.faults import Known
from tests.sim.foreign import copied_home, foreign, repair
from tests.sim.history import APPENDED, EVERY_TOPIC, INGESTED, PARTITIONS, History, as_new, is_unknown
from tests.sim.source import SimulatedSource
from tests.sim.world import Actor, Pace


def append(history: History, actor: Actor) -> None:
    run_id = f"append{history.world.new_id()}"
    intent = Appending(APPENDED, history.batch(), history.world.now_ms)
    history.ledger.intents[run_id] = intent
    history.unsettled[run_id] = intent
    _append(history, actor, run_id)


def repeat(history: History, actor: Actor) -> None:
    """An append whose end nobody knows is sent again with the same run id."""
    for run_id, intent in list(history.unsettled.items()):
        if history.world.now_ms - intent.begun_ms > history.world.pace.run_memory_ms:
            del history.unsettled[run_id]
    candidates = [run_id for run_id in history.unsettled if _may_be_repeated(history, run_id)]
    if candidates:
        _append(history, actor, candidates[history.world.chance.randrange(len(candidates))])


def _may_be_repeated(history: History, run_id: str) -> bool:
    book = history.ledger.book(APPENDED)
    is_safe = Known.FORGOTTEN_RUN_ID not in history.world.known
    return book is not None and (is_safe or not book.has_landed(run_id))


def _append(history: History, actor: Actor, run_id: str) -> None:
    world, intent = history.world, history.unsettled[run_id]
    book = history.ledger.book(APPENDED)
    if book is None:
        return
    records = as_new({partition: list(batch) for partition, batch in intent.batch.items()})
    result, error = history.attempt(lambda: history.store(actor.host).append(APPENDED, records, run_id, world.clock_ms))
    if result is not None:
        history.unsettled.pop(run_id, None)
        if not book.has_landed(run_id) and not book.is_gone:
            world.fail(f"append {run_id} is acknowledged, and never landed")
        if result.records != len(records):
            world.fail(f"append {run_id} of {len(records)} records is told as one of {result.records}")
    elif not is_unknown(error) and book.landed_by.get(run_id) == actor.name and not book.is_gone:
        world.fail(f"append {run_id} has landed, and is told as refused: {error}")


def ingest(history: History, actor: Actor) -> None:
    world, there = history.world, history.there
    for partition in range(PARTITIONS):
        for _ in range(world.chance.randint(0, 4)):
            there.ends[partition] += world.chance.choice([0, 0, 1, 3])
            there.records[partition].append(history.record(there.ends[partition]))
            there.ends[partition] += 1
    run_id = f"ingest{world.new_id()}"
    history.ledger.intents[run_id] = Ingesting(INGESTED, there.records)
    passed = Ingest(history.store(actor.host), history.engine(actor.host), lambda: world.clock_ms)
    source = SimulatedSource(INGESTED, there, history.source_config)
    result, _ = history.attempt(lambda: passed.carry_out(passed.plan(source), run_id))
    book = history.ledger.book(INGESTED)
    if result is not None and book is not None:
        history.judge(*result.failed.values())
        for intake in result.committed:
            end = book.logs[intake.topic_partition.partition].log_end_offset
            if end < intake.range.end_offset:
                world.fail(f"ingest {run_id} is acknowledged up to {intake.range.end_offset}, the log ends at {end}")


def clean(history: History, actor: Actor, *, stops: bool = False) -> None:
    world, cleaner = history.world, history.cleaner(actor.host)
    run_id = f"clean{world.new_id()}"
    requested = world.chance.random() < 0.7
    kinds = (Compact, Expire) if requested else world.chance.choice([(Expire,), (Compact, Expire)])
    # Another topic may have the name by the time that it is committed, and what is in legs has landed before that.
    book = history.ledger.book(actor.topic)
    begun, _ = history.attempt(lambda: cleaner.begin([actor.topic], run_id, now_ms=world.clock_ms, requested=requested))
    if begun is None:
        return
    history.ledger.intents[run_id] = Cleaning(actor.topic, begun.plan)
    staged, _ = history.attempt(lambda: cleaner.stage(begun, kinds))
    if staged is None:
        return
    if stops:
        world.park(world.chance.randint(1, 8))
    done, _ = history.attempt(lambda: cleaner.commit(staged))
    if done is None:
        return
    history.judge(*done.failed.values())
    if book is None:
        return
    has_landed = book.has_landed(run_id)
    if done.committed and not has_landed:
        world.fail(f"{run_id} is told as committed, and never landed")
    errors = [done.failed.get(str(outcome.step.topic_partition)) for outcome in staged.outcomes]
    # Of a clean in legs the first may have landed, and the last has not.
    in_legs = any(isinstance(step, Compact) and len(step.legs) > 1 for step in begun.plan.steps)
    # A topic that leaves the catalog meanwhile takes with it what landed, and a clean of it has nothing to do.
    is_there = actor.topic in history.catalog.pointers and not book.is_gone
    if has_landed and is_there and not in_legs and not done.committed and not any(map(is_unknown, errors)):
        world.fail(f"{run_id} has landed, and is told as failed: {done.failed}")


def zombie(history: History, actor: Actor) -> None:
    """A clean that is stopped between staging and commit, and goes on late."""
    clean(history, actor, stops=True)


def retain(history: History, actor: Actor) -> None:
    world, store = history.world, history.store(actor.host)
    run_id, now_ms = f"retain{world.new_id()}", world.clock_ms
    history.ledger.intents[run_id] = Retaining(actor.topic, now_ms)
    done, _ = history.attempt(lambda: Retainer(store).retain(named_logs(store, [actor.topic]), run_id, now_ms=now_ms))
    if done is not None:
        history.judge(*done.failed.values())


def delete_records(history: History, actor: Actor) -> None:
    world, book = history.world, history.ledger.book(actor.topic)
    if book is None:
        return
    partition = world.chance.randrange(PARTITIONS)
    log = book.logs[partition]
    bases = [book.starts[partition], *(batch[0].offset for batch in log.batches), log.log_end_offset]
    before_offset = bases[world.chance.randrange(min(3, len(bases)))]
    run_id = f"deletion{world.new_id()}"
    history.ledger.intents[run_id] = Deleting(actor.topic, partition, before_offset)
    name = TopicPartition(actor.topic, partition)
    done, _ = history.attempt(lambda: history.store(actor.host).delete_records(name, before_offset, run_id))
    if done is not None and book.starts[partition] < before_offset:
        world.fail(f"{run_id}: records before {before_offset} are told as deleted, and are there")


def purge(history: History, actor: Actor, *, jump_ms: int = 0) -> None:
    world = history.world
    if history.may_sweep(actor, jump_ms):
        purger = Purger(history.store(actor.host))
        topics, grace_ms = [] if actor.topic == EVERY_TOPIC else [actor.topic], world.pace.orphan_grace_ms
        done, _ = history.attempt(lambda: purger.purge(topics, now_ms=world.clock_ms, orphan_grace_ms=grace_ms))
        if done is not None:
            history.judge(*done.failed.values())


def purge_a_day_off(history: History, actor: Actor) -> None:
    """Everything that is staged is older than the grace by then."""
    purge(history, actor, jump_ms=history.world.pace.day_ms + history.world.pace.hour_ms)


def purge_all(history: History, actor: Actor) -> None:
    """Purges every topic that there is, and finishes the deletions that others have begun."""
    purge(history, actor)


def alter(history: History, actor: Actor) -> None:
    chance, pace = history.world.chance, history.world.pace
    name, values = chance.choice(
        [
            ("delete.retention.ms", ("0", str(pace.minute_ms), str(pace.hour_ms))),
            ("min.compaction.lag.ms", ("0", "0", str(pace.minute_ms))),
            ("cleanup.policy", ("compact", "compact,delete", "delete")),
            ("retention.ms", ("-1", str(pace.hour_ms))),
            ("file.delete.delay.ms", ("0", str(pace.minute_ms))),
        ]
    )
    history.attempt(lambda: history.store(actor.host).alter_topic(actor.topic, {name: chance.choice(values)}))


def recreate(history: History, actor: Actor) -> None:
    """The topic is deleted, and another one gets its name."""
    if Known.ACROSS_RECREATE in history.world.known:
        if not history.is_alone(actor):
            return
        history.unsettled.clear()
        history.late.clear()
    store = history.store(actor.host)
    history.attempt(lambda: store.delete_topic(actor.topic, history.world.clock_ms))
    settings = drawn_settings(history)
    if actor.topic == APPENDED:
        history.attempt(lambda: store.create_topic(APPENDED, PARTITIONS, settings))


def read(history: History, actor: Actor) -> None:
    """A reader gets a snapshot as it was made, whatever else goes on; or an error, never a gap."""
    book, store = history.ledger.book(actor.topic), history.store(actor.host)
    if book is None:
        return

    def reading() -> None:
        snapshot_id = store.describe_topic(actor.topic).snapshot_id
        if snapshot_id is None or snapshot_id not in book.seen:
            return
        reader = store.reader(actor.topic, snapshot_id=snapshot_id)
        found = list(reader.records(0, latest=False))
        for log in reader.logs:
            partition, start = log.topic_partition.partition, log.log_start_offset
            expected = [record for record in book.seen[snapshot_id][partition] if record.offset >= start]
            here = [record for number, record in found if number == partition]
            if here != expected:
                history.world.fail(f"a reader of {log.topic_partition} gets {len(here)} records, not {len(expected)}")

    history.attempt(reading)


def late_task(history: History, actor: Actor) -> None:
    """A copy of a task that nobody waits for any more."""
    if history.late:
        work = history.late.pop(history.world.chance.randrange(len(history.late)))
        history.attempt(work)


def verify(history: History, actor: Actor) -> None:
    """No check fails on a sound log."""
    book = history.ledger.book(actor.topic)
    if not history.is_alone(actor) or book is None or book.is_moved:
        return
    actor.is_spared, history.world.alone = True, actor
    store = history.store(actor.host)
    for log in store.logs(actor.topic):
        for check, result in zip(CHECKS, verify_log(store, log, history.world.clock_ms), strict=True):
            if not result.passed and not check.warns_only:
                history.world.fail(f"verify {log.topic_partition}: {result.name}: {result.description}")


@dataclass(frozen=True)
class Program:
    """One kind of program, and how often it begins."""

    name: str
    weight: int
    body: Callable[[History, Actor], None]
    topics: tuple[str, ...] = (APPENDED, APPENDED, INGESTED)


PROGRAMS = (
    Program("append", 10, append, (APPENDED,)),
    Program("repeat", 5, repeat, (APPENDED,)),
    Program("ingest", 5, ingest, (INGESTED,)),
    Program("clean", 12, clean),
    Program("zombie", 3, zombie),
    Program("retain", 2, retain),
    Program("delete-records", 1, delete_records),
    Program("purge", 5, purge),
    Program("purge-a-day-off", 2, purge_a_day_off),
    Program("purge-all", 2, purge_all, (EVERY_TOPIC,)),
    Program("alter", 2, alter),
    Program("recreate", 1, recreate, (APPENDED,)),
    Program("read", 2, read),
    Program("late-task", 3, late_task),
    Program("verify", 1, verify),
    Program("foreign", 1, foreign),
    Program("repair", 1, repair),
    Program("copied-home", 3, copied_home),
    Program("erase", 2, erase),
    Program("verify-erasures", 2, verify_erasures),
)


def pauses_ms(pace: Pace) -> tuple[int, ...]:
    """What may pass before a program begins."""
    return (0, 1, pace.minute_ms // 6, pace.minute_ms // 6, 2 * pace.minute_ms, 2 * pace.minute_ms, pace.hour_ms + 1)


def drawn_settings(history: History) -> dict[str, str]:
    """Settings of a topic; all is closed at once, so that sizes don't matter."""
    chance, pace = history.world.chance, history.world.pace
    # Dice of its own: what the others throw stays what it was.
    dice = Random(f"{history.world.seed}/watermarks")
    remembered_ms = dice.choice([pace.minute_ms // 6, 10 * pace.minute_ms, *[7 * pace.day_ms] * 6])
    return {
        "cleanup.policy": chance.choice(["compact", "compact", "compact,delete"]),
        "min.cleanable.dirty.ratio": "0",
        "segment.ms": "1",
        "delete.retention.ms": chance.choice(["0", "0", str(pace.minute_ms)]),
        "file.delete.delay.ms": chance.choice(["0", str(pace.minute_ms // 60), str(pace.minute_ms)]),
        "retention.ms": chance.choice(["-1", str(pace.day_ms)]),
        "compaction.strategy": "timestamp" if history.by_timestamp else "offset",
        "keptlog.watermark.retention.ms": str(remembered_ms),
    }
