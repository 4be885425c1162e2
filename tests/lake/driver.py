"""A process with a Spark session on the cluster, which cleans when it is told: ``python -m tests.lake.driver``.

    stdin    one line: clean
    stdout   {"committed": 1}, or {"failed": "…"}: one line for each

So that it can be killed, and so that the process of the tests has no session but the one that all tests share.
"""

from __future__ import annotations

import json
import sys

from keptlog.errors import KeptlogError
from keptlog.home import open_home
from tests.crash.workload import TOPIC, wall_clock_ms


def main() -> None:
    home = open_home()
    _tell({"ready": True})
    for _ in sys.stdin:
        try:
            result = home.clean(TOPIC, now_ms=wall_clock_ms())
            failed = [*map(str, result.failed.values())]
            told: dict[str, object] = {"failed": failed[0]} if failed else {"committed": len(result.committed)}
        except KeptlogError as error:
            told = {"failed": str(error)}
        _tell(told)


def _tell(what: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
