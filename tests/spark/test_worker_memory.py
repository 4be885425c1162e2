"""Workers whose address space is limited leave room for what does not belong to Arrow."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_TELL = "import keptlog.spark.worker_daemon, pyarrow; print(pyarrow.default_memory_pool().backend_name)"


@pytest.mark.parametrize(
    ("environment", "is_system"),
    [
        ({}, False),
        ({"PYSPARK_EXECUTOR_MEMORY_MB": "1536"}, True),
        ({"PYSPARK_EXECUTOR_MEMORY_MB": "1536", "ARROW_DEFAULT_MEMORY_POOL": "mimalloc"}, False),
    ],
    ids=["no limit", "a limit", "a limit, and the user's own choice"],
)
def test_arrow_uses_the_allocator_of_the_system_where_spark_limits_a_worker(
    environment: dict[str, str], *, is_system: bool
) -> None:
    inherited = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    told = subprocess.run(
        [sys.executable, "-c", _TELL], env=inherited | environment, capture_output=True, text=True, check=True
    )
    assert (told.stdout.strip() == "system") is is_system
