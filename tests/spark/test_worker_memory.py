"""What Arrow's allocator does with memory that is free, as the settings of local workers rely on (ADR 77)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from keptlog.spark.settings import session_settings

_SETTING = "spark.executorEnv.MIMALLOC_PURGE_DELAY"
_TASKS = """
import ctypes
import sys
import pyarrow as pa
from keptlog.spark.worker import in_a_task

def resident_mib():
    with open("/proc/self/statm") as told:
        return int(told.read().split()[1]) * 4096 // 2**20

for mib in map(int, sys.argv[1:]):
    with in_a_task():
        buffers = [pa.allocate_buffer(2**20) for _ in range(mib)]
        for buffer in buffers:
            ctypes.memset(buffer.address, 1, buffer.size)
        del buffer, buffers
    print(resident_mib())
"""


def _resident_mib(task_mib: list[int], pool: str = "mimalloc") -> list[int]:
    """What a worker has after each of its tasks, of which each takes so many MiB."""
    kept = {_SETTING.removeprefix("spark.executorEnv."): session_settings("local[2]")[_SETTING]}
    environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": pool} | kept
    command = [sys.executable, "-c", _TASKS, *map(str, task_mib)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [int(line) for line in run.stdout.splitlines()]


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_a_local_worker_keeps_the_memory_of_a_usual_task_and_gives_back_that_of_a_large_one() -> None:
    usual, large, *_ = _resident_mib([200, 700])
    assert usual > 200
    assert large < 200


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_a_local_worker_with_the_systems_allocator_gives_all_back() -> None:
    assert _resident_mib([200], "system")[0] < 200


def test_only_a_local_worker_is_told_to_and_whoever_gives_the_setting_wins() -> None:
    assert session_settings("local[2]", {_SETTING: "10"})[_SETTING] == "10"
    assert _SETTING not in session_settings("spark://host:7077")
