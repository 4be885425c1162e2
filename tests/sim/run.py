"""``make sim``: new histories until one breaks. ``make sim SEED=7 N=1`` does one again, to the byte.

a history    draw its kinds of faults and their rate -> create the topics
             begin programs, at most three at once, let whoever is drawn go on to its next seam, fail, crash
             judge after each program
             the end: nothing goes wrong any more; all that is unsettled is settled, cleaned, purged, verified
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from random import Random, SystemRandom

from keptlog.log.broker import COMMIT_MAX_BYTES
from keptlog.log.erasures.erasure import ErasureWay
from keptlog.table.namespaces import DELETING
from tests.sim import actors
from tests.sim.actors import PROGRAMS, Program, drawn_settings, pauses_ms
from tests.sim.erasing import open_erasures, press, verify_erasures
from tests.sim.faults import KNOWN, Fault, Known
from tests.sim.foreign import repair
from tests.sim.history import APPENDED, EVERY_TOPIC, INGESTED, PARTITIONS, History
from tests.sim.installed import installed
from tests.sim.last_act import damage
from tests.sim.world import Actor

ACTIONS = 47
AT_ONCE = 3
MOST_LOOKS = 6
"""At the erasures of a topic, each after a clean and a purge."""
SHOWN_LINES = 60


@dataclass(frozen=True)
class Outcome:
    """What became of one history."""

    seed: int
    broken: str | None
    digest: str
    tail: str
    fired: Counter[Fault] = field(default_factory=Counter)
    begun: Counter[str] = field(default_factory=Counter)
    lines: int = 0


def play(
    seed: int,
    known: frozenset[Known] = KNOWN,
    number_of_actions: int = ACTIONS,
    planted: Callable[[], AbstractContextManager[object]] = nullcontext,
    shown_lines: int = SHOWN_LINES,
) -> Outcome:
    """One history from its beginning to its end."""
    history = History.begun(seed, known)
    with installed(history.world), planted():
        return played(history, number_of_actions, shown_lines)


def played(history: History, number_of_actions: int, shown_lines: int = SHOWN_LINES) -> Outcome:
    """A history that was begun, to its end."""
    world, trace, begun, broken = history.world, history.world.trace, Counter[str](), None
    logging.disable(logging.CRITICAL)
    try:
        _create(history)
        _live(history, begun, number_of_actions)
        _end(history)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        broken = f"{type(error).__name__}: {error}"
        trace.add(f"!! {broken}")
    finally:
        world.end_all()
        logging.disable(logging.NOTSET)
    tail, fired = trace.tail(shown_lines), world.dice.fired
    return Outcome(world.seed, broken, trace.digest, tail, fired, begun, len(trace.lines))


def _create(history: History) -> None:
    """The topics are there, and nothing went wrong yet."""
    world = history.world
    history.by_timestamp = world.chance.random() < 0.3
    history.source_config = drawn_settings(history)
    settings = drawn_settings(history)
    # From dice of its own: the others fall as they did before there were legs.
    history.commit_max_bytes = Random(f"legs of {world.seed}").choice([COMMIT_MAX_BYTES, 10_000, 1])
    world.dice.are_held = True
    run_alone(history, "create", APPENDED, lambda _, __: history.store(0).create_topic(APPENDED, PARTITIONS, settings))
    world.dice.are_held = False


def _live(history: History, begun: Counter[str], number_of_actions: int) -> None:
    world, weights = history.world, [program.weight for program in PROGRAMS]
    while world.actions < number_of_actions or world.actors:
        is_time = not world.runnable() or (len(world.actors) < AT_ONCE and world.chance.random() < 0.1)
        if world.actions < number_of_actions and is_time:
            program = world.chance.choices(PROGRAMS, weights)[0]
            world.now_ms += world.chance.choice(pauses_ms(world.pace))
            begun[program.name] += 1
            _begin(history, program, world.chance.choice(program.topics), world.chance.randrange(2))
        runnable = world.runnable() or world.actors
        actor = world.any_of(runnable)
        world.step(actor)
        if actor.has_ended:
            history.oracle.require_complete()


def _begin(history: History, program: Program, topic: str, host: int) -> Actor:
    return history.world.start(program.name, host, topic, lambda actor: program.body(history, actor))


def run_alone(history: History, name: str, topic: str, body: Callable[[History, Actor], object]) -> None:
    """A program from its beginning to its end."""
    actor = history.world.start(name, 0, topic, lambda actor: _done(body(history, actor)))
    while not actor.has_ended:
        history.world.step(actor)
    history.oracle.require_complete()


def _done(_: object) -> None:
    return None


def _end(history: History) -> None:
    """Nothing goes wrong any more: what is unsettled is settled, and all guarantees hold."""
    world = history.world
    world.dice.are_held = True
    world.trace.add("the end: nothing goes wrong any more")
    for topic in (APPENDED, INGESTED):
        run_alone(history, "repair", topic, repair)
    for _ in list(history.unsettled):
        run_alone(history, "repeat", APPENDED, actors.repeat)
    for _ in list(history.late):
        run_alone(history, "late-task", APPENDED, actors.late_task)
    topics = [topic for topic in (APPENDED, INGESTED) if history.ledger.book(topic)]
    if INGESTED in topics:
        run_alone(history, "ingest", INGESTED, actors.ingest)
    for body in (actors.clean, actors.purge_a_day_off, actors.purge_a_day_off, actors.read, actors.verify):
        for topic in topics:
            run_alone(history, body.__name__, topic, body)
    for topic in topics:
        _end_erasures(history, topic)
    run_alone(history, "purge_all", EVERY_TOPIC, actors.purge_all)
    _require_over(history)
    history.oracle.require_receipts()
    history.oracle.require_no_leftovers()
    if Known.FORGOTTEN_RUN_ID not in world.known and history.unsettled and history.ledger.book(APPENDED):
        world.fail(f"{sorted(history.unsettled)} can't be settled")
    for topic in topics:
        run_alone(history, "damage", topic, damage)


def _end_erasures(history: History, topic: str) -> None:
    """Every request ends, if an operator sees to it; those that wait for retention alone are left."""
    for _ in range(MOST_LOOKS):
        left = [row for row in open_erasures(history, topic) if row.erasure.way != ErasureWay.RETENTION]
        if not left:
            return
        for body in (press, actors.clean, actors.purge_a_day_off, verify_erasures):
            run_alone(history, body.__name__, topic, body)
    told = [f"{row.id} is {row.erasure.state}: {row.blocked}" for row in left]
    history.world.fail(f"erasures of topic {topic} never end: {told}")


def _require_over(history: History) -> None:
    """Deletions that were begun are finished, and all that was deleted is sealed."""
    left = [name for name in history.catalog.pointers if name.startswith(f"{DELETING}.")]
    if left:
        history.world.fail(f"the deletion of {left} is never finished")
    locations = [history.ledger.books[identity].location for identity in history.ledger.current.values()]
    history.chain.require_sealed(history.store(0).chain, locations)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make sim", description="Try new simulated histories.")
    parser.add_argument("--histories", type=int, default=1000, metavar="N", help="how many")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6), metavar="SEED", help="the first")
    parser.add_argument("--jobs", type=int, default=2, metavar="JOBS", help="processes that they run in")
    parser.add_argument("--all", action="store_true", help="go on after a history that breaks; a line for each")
    parser.add_argument("--also", nargs="*", default=[], type=Known, metavar="KNOWN", help="let known defects in")
    parser.add_argument("--trace", action="store_true", help="show all of the trace of the first one")
    wanted = parser.parse_args(arguments)
    known = KNOWN - set(wanted.also)
    if wanted.trace:
        _tell(told(play(wanted.seed, known, shown_lines=10**6)))
        return 0
    started, fired, begun, count, broke = time.monotonic(), Counter[Fault](), Counter[str](), 0, 0
    for outcome in _outcomes(range(wanted.seed, wanted.seed + wanted.histories), wanted.jobs, known):
        count += 1
        fired += outcome.fired
        begun += outcome.begun
        broke += outcome.broken is not None
        if outcome.broken and wanted.all:
            _tell(f"seed {outcome.seed} breaks: {outcome.broken}")
        elif outcome.broken:
            _tell(told(outcome))
            return 1
    seconds = time.monotonic() - started
    _tell(f"{count} histories from seed {wanted.seed} on in {seconds:.0f} s: {broke} of them break an oracle")
    _tell(f"{fired.total()} faults: " + _counts(fired))
    _tell(f"{begun.total()} programs: " + _counts(begun))
    return 1 if broke else 0


def _counts(counter: Counter[Fault] | Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counter.most_common())


def told(outcome: Outcome) -> str:
    """What is to be known of a history that broke, and how to see it again."""
    return (
        f"{outcome.tail}\n\nseed {outcome.seed} breaks: {outcome.broken}\n"
        f"trace {outcome.digest[:16]}, {outcome.lines} lines; again: make sim SEED={outcome.seed} N=1"
    )


def _outcomes(seeds: Sequence[int], jobs: int, known: frozenset[Known]) -> Iterator[Outcome]:
    if jobs < 2 or len(seeds) < 2:
        yield from map(partial(play, known=known), seeds)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(partial(play, known=known), seeds, chunksize=4)


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
