"""One simulated world: its clock, its actors, and the one door through which all that they do passes.

An actor is a program: an append, a clean, a purge. It runs the real code in a thread of its own, but only one thread
ever runs, the one that has the baton. It may lose it at a **seam**, each call that leaves the code under test: to the
catalog, to files, to sleep. Who goes on is drawn from the seed, and so is what goes wrong:

    actor 1   load --.             .-- commit               a seam may: hand the baton on, fail,
    actor 2           '-- delete --'                        end the actor (a crash), end all of them (a power loss)

A crash is ``Crash``, raised where the actor stands. Cleanup code would still run, which a killed program's does not, so
a dead actor's every further call at a seam is without effect and raises ``Crash`` again.

Nothing in here may depend on anything but the seed: no wall clock, no hash of a text, no order of a set.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from keptlog.log.holder import ORPHAN_GRACE_MS
from tests.sim.faults import Dice, Fault, Known
from tests.sim.trace import Trace

BEGINNING_MS = 1_700_000_000_000
_SWITCHES = 0.25
"""How often a seam hands the baton on."""
MOST_SEAMS = 60_000
"""A history that makes more calls does not end."""


@dataclass(frozen=True)
class Pace:
    """How long what people call a minute, an hour and a day is in a world, in ms."""

    minute_ms: int = 60_000
    hour_ms: int = 3_600_000
    day_ms: int = 86_400_000
    orphan_grace_ms: int = ORPHAN_GRACE_MS
    run_memory_ms: int = 82_800_000
    """An append is sent again for so long: an hour less than its run id is remembered."""
    most_skew_ms: int = 120_000
    """How far clocks may differ."""


class Crash(BaseException):
    """The program is gone. No ``except Exception`` of the code under test may stop it."""


class Broken(BaseException):
    """An oracle does not hold; ends the history, whatever the code under test would do about it."""


@dataclass(eq=False)
class Actor:
    """One program on its way."""

    name: str
    host: int
    body: Callable[[Actor], None]
    is_dead: bool = False
    has_ended: bool = False
    topic: str = ""
    """What it works on, for those who must be alone there."""
    wakes_at_action: int = 0
    """Until so many actions were begun it is not chosen: a program that was stopped, and goes on late."""
    first_look: dict[str, str] = field(default_factory=dict)
    """Topic to the table's id at the first look."""
    lost_races: int = 0
    """Commits in a row that another program came before."""
    is_spared: bool = False
    """Nothing goes wrong for it."""
    is_foreign: bool = False
    """It is none of keptlog's."""
    begun_ms: int = 0
    first_seam: int = 0
    last_seam: int | None = None
    """How many seams the world had when it ended; null as long as it has not."""
    is_stopped: bool = False
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    thread: threading.Thread | None = None

    def meets(self, other: Actor) -> bool:
        """Whether both were under way at some moment."""
        ends = [math.inf if actor.last_seam is None else actor.last_seam for actor in (self, other)]
        return self is not other and self.first_seam <= ends[1] and other.first_seam <= ends[0]


@dataclass
class World:
    """Everything that the actors of one history share, but for what they store."""

    seed: int
    known: frozenset[Known]
    trace: Trace = field(default_factory=Trace)
    now_ms: int = BEGINNING_MS
    pace: Pace = field(default_factory=Pace)
    longest_step_seconds: float = 120
    actors: list[Actor] = field(default_factory=list)
    current: Actor | None = None
    alone: Actor | None = None
    """Nobody else goes on before it has ended."""
    broken: BaseException | None = None
    actions: int = 0
    attempts: Iterator[int] = field(default_factory=itertools.count)
    """Of tasks: what runs again under its run id is another application, whose attempts have other names."""
    _seams: int = 0
    _ids: int = 0
    _main: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _is_quiet: bool = False
    on_power_loss: Callable[[], None] | None = None
    on_crash: Callable[[Actor], None] | None = None

    def __post_init__(self) -> None:
        self.chance = Random(f"{self.seed}/content")
        self._schedule = Random(f"{self.seed}/schedule")
        self._bytes = Random(f"{self.seed}/bytes")
        self.dice = Dice.drawn_for(self.seed, self.known)
        self.skews_ms = [0, 0]
        if Known.CLOCK_SKEW not in self.known:
            self.skews_ms = [0, self.chance.choice([0, 0, -60_000, 60_000, 5])]
        enabled = ", ".join(sorted(self.dice.enabled))
        self.trace.add(f"seed {self.seed}: rate {self.dice.rate}, skews {self.skews_ms}, faults: {enabled}")

    @property
    def clock_ms(self) -> int:
        """What the clock of the current actor's host shows."""
        return self.now_ms + (self.skews_ms[self.current.host] if self.current else 0)

    def new_id(self) -> str:
        """A text that was never returned before; short, so that a trace can be read."""
        self._ids += 1
        return f"x{self._ids}"

    def random_bytes(self, count: int) -> bytes:
        return self._bytes.randbytes(count)

    def sleep(self, seconds: float) -> None:
        """What the code under test waits: the clock moves, and others may be faster."""
        self.seam("sleep", f"{seconds:.3f}", always_switch=True)
        self.now_ms += int(seconds * 1000) + 1

    def tell(self, text: str) -> None:
        """A line of the trace that is no call."""
        self.trace.add(f"{self.current.name if self.current else 'world'}: {text}")

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Calls of an oracle: they are no part of the history."""
        before, self._is_quiet = self._is_quiet, True
        try:
            yield
        finally:
            self._is_quiet = before

    def seam(
        self, what: str, where: str, possible: Sequence[Fault] = (), *, always_switch: bool = False
    ) -> Fault | None:
        """One call that leaves the code under test; gives the fault that whoever carries it out is to do.

        A crash before the call, and a power loss, are done here.
        """
        actor = self.current
        if self._is_quiet or actor is None:
            return None
        if actor.is_dead or self.broken:
            raise Crash
        self._seams += 1
        if self._seams > MOST_SEAMS:
            self.fail(f"the history made {MOST_SEAMS} calls and does not end")
        if always_switch or self._schedule.random() < _SWITCHES:
            self._hand_on(actor)
        fault = None if actor.is_spared else self.dice.draw(possible)
        self.trace.add(f"{actor.name}: {what} {where}{f' !! {fault}' if fault else ''}")
        if fault is Fault.CRASH_BEFORE:
            self.crash()
        if fault is Fault.POWER_LOSS:
            self.lose_power()
        return fault

    def park(self, actions: int) -> None:
        """The current actor is stopped until so many more actions were begun."""
        actor = self.current
        if actor is None:
            return
        actor.wakes_at_action, actor.is_stopped = self.actions + actions, True
        self.tell(f"is stopped for {actions} actions")
        self._hand_on(actor)
        actor.is_stopped = False

    def crash(self) -> None:
        """End the current actor, now."""
        actor = self.current
        if actor:
            actor.is_dead = True
            if self.on_crash:
                self.on_crash(actor)
        raise Crash

    def lose_power(self) -> None:
        """All programs end at once, and the disk forgets what was not synced."""
        for actor in self.actors:
            actor.is_dead = True
        if self.on_power_loss:
            self.on_power_loss()
        raise Crash

    def fail(self, why: str) -> None:
        """An oracle does not hold.

        Raises:
            Broken: always.
        """
        self.broken = self.broken or Broken(why)
        raise self.broken

    def start(self, name: str, host: int, topic: str, body: Callable[[Actor], None]) -> Actor:
        """Let a program begin; it runs when it is chosen."""
        self.actions += 1
        actor = Actor(f"{name}#{self.actions}", host, body, topic=topic, begun_ms=self.now_ms, first_seam=self._seams)
        self.trace.add(f"{actor.name} begins on host {host} at +{self.now_ms - BEGINNING_MS} ms")
        actor.thread = threading.Thread(target=self._work, args=(actor,), daemon=True)
        actor.thread.start()
        self.actors.append(actor)
        return actor

    def runnable(self) -> list[Actor]:
        """Who may go on now."""
        if self.alone in self.actors:
            return [actor for actor in self.actors if actor is self.alone]
        return [actor for actor in self.actors if actor.wakes_at_action <= self.actions or actor.is_dead]

    def step(self, actor: Actor) -> None:
        """Give an actor the baton until it hands it on, or ends."""
        self.current = actor
        actor.turn.release()
        if not self._main.acquire(timeout=self.longest_step_seconds):
            raise Broken(f"{actor.name} waits for something that is no seam: a lock, or a thread")
        self.current = None
        if actor.has_ended:
            self.actors.remove(actor)
            if actor.thread:
                actor.thread.join()
        if self.broken:
            raise self.broken

    def any_of(self, actors: Sequence[Actor]) -> Actor:
        return actors[self._schedule.randrange(len(actors))]

    def end_all(self) -> None:
        """Let every thread end, whatever it was about to do."""
        for actor in list(self.actors):
            actor.is_dead = True
            self.current = actor
            actor.turn.release()
            self._main.acquire(timeout=self.longest_step_seconds)
        self.current, self.actors = None, []

    def _work(self, actor: Actor) -> None:
        actor.turn.acquire()
        try:
            if not actor.is_dead:
                actor.body(actor)
            self.trace.add(f"{actor.name} ends")
        except Crash:
            self.trace.add(f"{actor.name} crashes")
        except BaseException as error:  # noqa: BLE001  # shown by whoever steps
            self.broken = self.broken or error
        finally:
            actor.has_ended, actor.last_seam = True, self._seams
            self._main.release()

    def _hand_on(self, actor: Actor) -> None:
        self._main.release()
        actor.turn.acquire()
        if actor.is_dead or self.broken:
            raise Crash
