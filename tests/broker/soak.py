"""``make soak-broker``: random topics through a live broker's cleaner, and here through ingests in between.

    a round     three topics, one action of one of them at a time: records, transactions, a wait for the broker's
                cleaner, an ingest, a clean here; now and then the broker is killed, also inside of a transaction
    required    after each ingest, each clean and at the end: every key has the value here that it has there, and that
                its producer was told; no key is alive here that is dead there

Tombstones are dropped there after ``delete.retention.ms`` of 0 to 2 s, so that ingests come too late for some: they
stop, and reconcile. The number of a round is its seed; it draws what happens, the broker's threads when. The first
difference ends it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random, SystemRandom

from confluent_kafka import KafkaException

from examples.installed import NotInstalled
from keptlog.errors import KeptlogError
from keptlog.log.words.counted import counted
from tests.broker.broker import Broker, running_broker
from tests.broker.soak_topic import DAY_MS, Differs, SoakTopic

TOPICS = 3
ACTIONS = 120
TOMBSTONES_KEPT_MS = (0, 500, 2_000, DAY_MS)
_KILLS_OF_ACTIONS = 0.01


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if nothing was found, 1 if something was, 2 if something is missing on this machine."""
    parser = argparse.ArgumentParser(prog="make soak-broker", description="A live broker and keptlog, side by side.")
    parser.add_argument("--minutes", type=float, default=10, metavar="MINUTES", help="no round begins after that")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6), metavar="SEED", help="the first")
    wanted = parser.parse_args(arguments)
    end, seed, happened = time.monotonic() + 60 * wanted.minutes, wanted.seed, Counter[str]()
    try:
        with running_broker() as broker:
            while seed == wanted.seed or time.monotonic() < end:
                play(broker, seed, happened)
                seed += 1
                _tell(f"round {seed - 1}: {told(happened)}")
    except NotInstalled as missing:
        _tell(f"soak-broker: {missing}")
        return 2
    except (Differs, KeptlogError, KafkaException) as error:
        _tell(f"seed {seed} fails: {error}\nagain: make soak-broker SEED={seed}")
        return 1
    _tell(f"{counted(seed - wanted.seed, 'round')} from seed {wanted.seed} on, 0 differences")
    return 0


def play(
    broker: Broker, seed: int, happened: Counter[str], actions: int = ACTIONS, kills: float = _KILLS_OF_ACTIONS
) -> None:
    """One round.

    Raises:
        Differs: the two sides are not one.
    """
    dice = Random(seed)
    with tempfile.TemporaryDirectory(prefix="keptlog-soak-") as folder:
        topics = [
            SoakTopic(broker, Path(folder, f"{number}"), dice, happened, dice.choice(TOMBSTONES_KEPT_MS))
            for number in range(TOPICS)
        ]
        for _ in range(actions):
            topic = dice.choice(topics)
            if dice.random() < kills:
                happened["kills"] += 1
                topic.transact(broker.restart)
            else:
                topic.act()
        for topic in topics:
            topic.finish()


def told(happened: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(happened.items()))


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
