"""``make soak-lake``: kill each part of a lake at random moments of cleans, and play histories with faults on it.

    20 kills of each of executor, worker, driver, Postgres and S3, in a drawn order; S3 is deaf as often
    5 histories on S3 + Postgres, 5 on S3 + REST, of programs side by side (``histories``)
    as many of the simulator's, which know all that may happen to a topic (``sim``)

``python -m tests.lake.soak --kills 200`` does ten times as much, ``--kills 0 --histories 50`` only histories. A seed
draws the order and the faults; a kill hits another moment each time. The first failure ends it, with the seed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random, SystemRandom

from examples.installed import NotInstalled
from examples.lake.kept_s3_server import kept_s3_classpath, kept_s3_server
from examples.lake.postgres import Postgres, postgres
from examples.lake.proxied_catalog import KINDS
from examples.lake.rest_catalog import rest_classpath
from examples.lake.s3_server import S3Server, s3_server
from examples.lake.spark_cluster import spark_cluster
from tests.lake.histories import History
from tests.lake.kills import KILLED, kills_on
from tests.lake.sim import play
from tests.lake.stores import ground_of
from tests.sim.run import told

_KILLS_A_TOPIC = 20
_KILLS_A_HISTORY = 4
_ACTIONS = 47
"""Of a simulated history, as in ``make sim``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if nothing was found, 1 if something was, 2 if something is missing on this machine."""
    parser = argparse.ArgumentParser(prog="python -m tests.lake.soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=20, help="of each part; default 20")
    parser.add_argument("--histories", type=int, help="of each kind on each catalog; default a fourth of the kills")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6))
    wanted = parser.parse_args(arguments)
    histories = -(-wanted.kills // _KILLS_A_HISTORY) if wanted.histories is None else wanted.histories
    try:
        rest_classpath(_tell)
        kept_s3_classpath(_tell)
        if wanted.kills:
            kill(wanted.kills, Random(wanted.seed))
        for number in range(histories):
            disturb(wanted.seed + number)
    except NotInstalled as missing:
        _tell(f"soak-lake: {missing}")
        return 2
    except Exception:  # noqa: BLE001  # whatever it is, it was found, and is told with its seed
        _tell(f"{traceback.format_exc()}seed {wanted.seed} fails; again: make soak-lake SEED={wanted.seed}")
        return 1
    return 0


def kill(kills: int, chance: Random) -> None:
    """So many kills of each part."""
    happened, order = Counter[str](), chance.sample([*KILLED] * kills, len(KILLED) * kills)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with ExitStack() as opened:
        root = opened.enter_context(tempfile.TemporaryDirectory(prefix="keptlog-soak-", ignore_cleanup_errors=True))
        s3, database = opened.enter_context(kept_s3_server()), opened.enter_context(postgres())
        cluster = opened.enter_context(spark_cluster(workers=2))
        for start in range(0, len(order), _KILLS_A_TOPIC):
            folder = Path(root, f"kills-{start}")
            folder.mkdir()
            with kills_on(s3, database, cluster, folder, chance) as topic:
                for what in order[start : start + _KILLS_A_TOPIC]:
                    topic.kill(what)
                topic.require_the_end()
                happened.update(topic.happened)
            _tell(f"{sum(happened[what] for what in KILLED)} kills of {len(order)}: {dict(happened)}")


def disturb(seed: int) -> None:
    """One history of each kind on each catalog."""
    with s3_server() as s3, postgres() as database:
        for kind in KINDS:
            _play_side_by_side(kind, s3, database, seed)
            _play_simulated(kind, s3, database, seed)


def _play_side_by_side(kind: str, s3: S3Server, database: Postgres, seed: int) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="keptlog-soak-") as folder,
        ground_of(kind, s3, database) as ground,
    ):
        history = History(ground, Path(folder), Random(f"{seed}-{kind}"))
        history.play(rounds=4, actions=8)
    _tell(f"history {seed} on {kind}: {dict(history.happened)}")


def _play_simulated(kind: str, s3: S3Server, database: Postgres, seed: int) -> None:
    with ground_of(kind, s3, database) as ground:
        outcome, happened = play(ground, s3, seed, _ACTIONS)
    if outcome.broken:
        raise AssertionError(told(outcome))
    begun, fired = dict(outcome.begun), {str(fault): count for fault, count in outcome.fired.items()}
    _tell(f"simulated history {seed} on {kind}: {begun}, requests {dict(happened)}, programs {fired}")


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
