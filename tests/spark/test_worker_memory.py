"""What Arrow's allocator does with memory that is free, as the settings of local workers rely on (ADR 77)."""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa
import pytest

from keptlog.spark.settings import session_settings

_SETTING = "spark.executorEnv.MIMALLOC_PURGE_DELAY"
_MIB = 2**20
_FREES = """
import ctypes
import pyarrow as pa

def resident_bytes():
    with open("/proc/self/statm") as told:
        return int(told.read().split()[1]) * 4096

before = resident_bytes()
buffers = [pa.allocate_buffer(2**20) for _ in range(100)]
for buffer in buffers:
    ctypes.memset(buffer.address, 1, buffer.size)
del buffer, buffers
pa.default_memory_pool().release_unused()
print(resident_bytes() - before)
"""


def _left_bytes(variables: dict[str, str]) -> int:
    """What a process still has of 100 MiB that it was given, and has freed."""
    environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "mimalloc"} | variables
    run = subprocess.run([sys.executable, "-c", _FREES], env=environment, capture_output=True, text=True, check=True)
    return int(run.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_a_local_worker_keeps_what_it_has_freed() -> None:
    assert "mimalloc" in pa.supported_memory_backends()
    assert _left_bytes({"MIMALLOC_PURGE_DELAY": session_settings("local[2]")[_SETTING]}) > 90 * _MIB
    assert _left_bytes({}) < 50 * _MIB


def test_only_a_local_worker_is_told_to_and_whoever_gives_the_setting_wins() -> None:
    assert session_settings("local[2]", {_SETTING: "10"})[_SETTING] == "10"
    assert _SETTING not in session_settings("spark://host:7077")
