"""``make soak-lake``: kill each part of a lake at random moments of cleans, and play histories with faults on it.

    20 kills of each of executor, worker, driver, Postgres and S3, in a drawn order, on one topic
    5 histories on S3 + Postgres, 5 on S3 + REST, with faults in all requests

``python -m tests.lake.soak --kills 200`` does ten times as much. A seed draws the order and the faults; a kill hits
another moment each time. The first failure ends it, with the seed.
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
from examples.lake.postgres import postgres
from examples.lake.rest_catalog import rest_classpath
from examples.lake.s3_server import s3_server
from examples.lake.spark_cluster import spark_cluster
from tests.lake.histories import History
from tests.lake.kills import KILLED, kills_on
from tests.lake.stores import KINDS, ground_of

_KILLS_A_TOPIC = 20
_KILLS_A_HISTORY = 4


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if nothing was found, 1 if something was, 2 if something is missing on this machine."""
    parser = argparse.ArgumentParser(prog="python -m tests.lake.soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=20, help="of each part; default 20")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6))
    wanted = parser.parse_args(arguments)
    try:
        rest_classpath(_tell)
        soak(wanted.kills, wanted.seed)
    except NotInstalled as missing:
        _tell(f"soak-lake: {missing}")
        return 2
    except Exception:  # noqa: BLE001  # whatever it is, it was found, and is told with its seed
        _tell(f"{traceback.format_exc()}seed {wanted.seed} fails; again: make soak-lake SEED={wanted.seed}")
        return 1
    return 0


def soak(kills: int, seed: int) -> None:
    """All of it once."""
    chance, happened = Random(seed), Counter[str]()
    order = chance.sample([*KILLED] * kills, len(KILLED) * kills)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with ExitStack() as opened:
        root = Path(
            opened.enter_context(tempfile.TemporaryDirectory(prefix="keptlog-soak-", ignore_cleanup_errors=True))
        )
        s3, database = opened.enter_context(s3_server()), opened.enter_context(postgres())
        cluster = opened.enter_context(spark_cluster(workers=2))
        for start in range(0, len(order), _KILLS_A_TOPIC):
            folder = root / f"kills-{start}"
            folder.mkdir()
            with kills_on(s3, database, cluster, folder, chance) as topic:
                for what in order[start : start + _KILLS_A_TOPIC]:
                    topic.kill(what)
                topic.require_the_end()
                happened.update(topic.happened)
            _tell(f"{sum(happened[what] for what in KILLED)} kills of {len(order)}: {dict(happened)}")
        for number in range(-(-kills // _KILLS_A_HISTORY)):
            for kind in KINDS:
                folder = root / f"{kind}-{number}"
                folder.mkdir()
                with ground_of(kind, s3, database) as ground:
                    history = History(ground, folder, Random(f"{seed}-{kind}-{number}"))
                    history.play(rounds=4, actions=8)
                _tell(f"history {number + 1} on {kind}: {dict(history.happened)}")


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
