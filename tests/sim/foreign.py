"""Another program at a topic's table, which knows nothing of logs: it rolls back, or adds a file of its own.

From then on nothing of keptlog's may land, until somebody has repaired it; the ledger sees to that.
"""

from __future__ import annotations

from keptlog.log.record import Record
from keptlog.passes.purge import Purger
from keptlog.passes.repair import Repairer
from keptlog.storage.schema import to_arrow
from tests.sim.book import Standing
from tests.sim.faults import Known
from tests.sim.history import History
from tests.sim.world import Actor


def foreign(history: History, actor: Actor) -> None:
    """One commit of another program."""
    world, book = history.world, history.ledger.book(actor.topic)
    if book is None or book.recorded_id is None or {Known.ROLLBACK, Known.FOREIGN_WRITE} & world.known:
        return
    actor.is_spared = actor.is_foreign = True
    table = history.catalog.load_table(("keptlog", actor.topic))
    older = [each.snapshot_id for each in table.metadata.snapshots if each.snapshot_id in book.seen][:-1]
    if world.chance.random() < 0.5 and older:
        chosen = older[world.chance.randrange(len(older))]
        world.tell(f"rolls back to snapshot {chosen}")
        history.attempt(lambda: table.manage_snapshots().set_current_snapshot(chosen).commit())
        return
    offset = book.logs[0].log_end_offset + world.chance.choice([-1, 0, 5])
    rows = to_arrow(0, [Record(max(offset, 0), b"foreign", history.value(), world.now_ms)])
    world.tell(f"inserts a row at offset {offset}")
    history.attempt(lambda: table.append(rows))


def repair(history: History, actor: Actor) -> None:
    """What was acknowledged is brought back."""
    world, book = history.world, history.ledger.book(actor.topic)
    if book is None or not book.is_moved:
        return
    repairer, run_id = Repairer(history.store(actor.host)), f"repair{world.new_id()}"
    history.ledger.intents[run_id] = Standing(actor.topic)

    def bring_back() -> None:
        proposal = repairer.propose(actor.topic, now_ms=world.clock_ms)
        if proposal:
            for checks in repairer.repair(proposal, run_id, now_ms=world.clock_ms).values():
                world.tell(f"repaired, {sum(check.passed for check in checks)} checks pass")

    history.attempt(bring_back)


def copied_home(history: History, actor: Actor) -> None:
    """A home is copied; the original goes on; a purge of the copy must see that it knows less, and delete nothing."""
    world, catalog = history.world, history.catalog
    if Known.COPIED_HOME in world.known or actor.topic not in catalog.pointers:
        return
    history.copies.append(catalog.copied())
    copy = history.copies[world.chance.randrange(len(history.copies))]
    if not copy.pointers.get(actor.topic) or not history.is_behind(copy, actor.topic):
        return
    actor.is_spared = True
    done = Purger(history.store_over(copy)).purge([actor.topic], now_ms=world.clock_ms + world.pace.day_ms)
    world.tell(f"a copy's purge: {done.failed}")
    if not done.failed:
        world.fail(f"a purge of topic {actor.topic} in a copied home goes through, and the original has gone on")
