"""Which tests run in one process, if there are several (``pytest -n 2``), and which begin first.

    kafka    Kafka's own classes, a broker, and Maven, which fetches both: once for all of them
    spark    those that take the Spark session: a second one costs ten seconds and a gigabyte
    dagster  those that take it for runs of Dagster: as long as all of spark, so that it is worth another session
    command  those that take it for a command
    cluster  a Spark cluster of its own, and no session of the tests
    daemons  Dagster with all of its processes: several at a time would take minutes over what waits for seconds
    catalogs those that ask a database and a REST catalog, which are started once for them
    lake     the servers of a lake, once for all of them
    FILE     all others: what a file sets up, it sets up once

Groups are told by where a test lies. xdist has marks for that, but its 3.8 does not find them again with pytest 9.2.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

_TOGETHER = {
    "tests/lake/": "lake",
    "tests/kafka/": "kafka",
    "tests/broker/": "kafka",
    "tests/examples/test_demo_kafka.py": "kafka",
    "tests/catalogs/test_certified.py": "catalogs",
    "tests/catalogs/test_faults.py": "catalogs",
    "tests/spark/test_cluster.py": "cluster",
    "tests/spark/": "spark",
    "tests/orchestration/": "dagster",
    "tests/cli/": "command",
    "tests/readers/": "spark",
    "tests/benchmarks/": "spark",
    "tests/scenarios/": "spark",
    "tests/examples/test_demo.py": "spark",
    "tests/readme/test_pages.py": "command",
    "tests/shared_dagster/": "daemons",
    "tests/e2e/": "daemons",
    "tests/deploy/": "daemons",
    "tests/ingest/test_kafka_logs.py": "spark",
}
_FIRST = (
    "kafka",
    "daemons",
    "dagster",
    "spark",
    "command",
    "lake",
    "cluster",
    "tests/examples/test_demo_lake.py",
    "tests/model/test_model.py",
    "tests/model/test_readers.py",
    "tests/model/test_requests.py",
    "tests/readme/test_commands.py",
)
"""What takes longest, so that no process waits for another at the end."""


def group_of(nodeid: str) -> str:
    """The group of a test."""
    file = nodeid.partition("::")[0]
    return next((group for place, group in _TOGETHER.items() if file.startswith(place)), file)


def turn_of(nodeid: str) -> int:
    """The smaller, the sooner."""
    group = group_of(nodeid)
    return _FIRST.index(group) if group in _FIRST else len(_FIRST)


class ByGroup(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out groups."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
