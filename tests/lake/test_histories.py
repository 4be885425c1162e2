"""Histories on S3 with Postgres or a REST catalog, faults in all requests: nothing lost, doubled or resurrected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from examples.lake.postgres import Postgres
from examples.lake.proxied_catalog import KINDS
from examples.lake.s3_server import S3Server
from keptlog.home import new_id
from keptlog.log.record import Record
from keptlog.storage.schema import to_arrow
from keptlog.table.chain.receipt_chain import ReceiptChain
from keptlog.table.chain.receipt_verification import verify_receipts
from tests.crash.traffic import marked_batch
from tests.crash.workload import SETTINGS, TOPIC, clean, wall_clock_ms
from tests.lake.histories import History
from tests.lake.sim import history_on, play
from tests.lake.stores import ground_of, open_lake
from tests.sim.chain import KEY
from tests.sim.history import APPENDED, PARTITIONS
from tests.sim.run import run_alone, told
from tests.sim.world import Broken


@pytest.mark.parametrize("kind", KINDS)
def test_a_disturbed_history_ends_as_the_reference_does(
    kind: str, s3: S3Server, database: Postgres, tmp_path: Path, dice: Callable[[int], Random]
) -> None:
    with ground_of(kind, s3, database) as ground:
        history = History(ground, tmp_path, dice(1))
        history.play(rounds=2, actions=6)
        assert history.happened["batches"]
        assert history.happened["LOST_ANSWER"] + history.happened["RESET"] + history.happened["SLOW_DOWN"]
        assert not history.happened["not one line"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_simulated_history_breaks_no_oracle_on_a_lake(
    kind: str, s3: S3Server, database: Postgres, dice: Callable[[int], Random]
) -> None:
    with ground_of(kind, s3, database) as ground:
        outcome, happened = play(ground, s3, dice(2).randrange(10**6), actions=10)
    assert outcome.broken is None, told(outcome)
    assert happened.total()


def test_what_no_program_of_a_history_has_done_is_seen_on_a_lake(s3: S3Server, database: Postgres) -> None:
    with ground_of("sql", s3, database) as ground, history_on(ground, s3, 1) as (history, _):
        history.world.dice.are_held = True
        run_alone(history, "create", APPENDED, lambda *_: history.store(0).create_topic(APPENDED, PARTITIONS, {}))
        rows = to_arrow(0, [Record(0, b"key", b"value", wall_clock_ms())])
        with pytest.raises(Broken, match="a commit of nobody"):
            run_alone(
                history, "intruder", APPENDED, lambda *_: history.catalog.load_table(("keptlog", APPENDED)).append(rows)
            )
        history.world.end_all()


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_purge_deletes_is_sealed_into_the_chain_of_every_catalog(
    kind: str, s3: S3Server, database: Postgres
) -> None:
    with ground_of(kind, s3, database) as ground:
        store = open_lake(ground.straight)
        chain = ReceiptChain(store.committer, lambda: KEY, new_id, "somebody")
        store.seal = chain.append
        store.create_topic(TOPIC, 1, SETTINGS)
        for number in range(2):
            store.append(TOPIC, marked_batch(number), f"run-{number}", wall_clock_ms())
        clean(store)
        receipt = store.purge(TOPIC, wall_clock_ms())
        assert receipt.deleted_files
        assert receipt.sealing.why == ""
        found = verify_receipts(chain, [KEY.public])
        assert (found.receipts, found.is_sound) == (len(receipt.sealing.sealed), True)
        assert found.receipts
