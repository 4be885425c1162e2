"""Two threads that need a Spark at once, as those of a program that cleans two homes: one starts it for both."""

from __future__ import annotations

import json
import os
import subprocess
import sys

_CODE = """
import json, os, threading
from concurrent.futures import ThreadPoolExecutor
from keptlog.spark import launch
from keptlog.spark.session import start_spark
started, both, start = [], threading.Barrier(2), launch._started
def counted(settings):
    started.append(settings)
    return start(settings)
launch._started = counted
def have(_):
    both.wait()
    return start_spark("local[1]")
with ThreadPoolExecutor(2) as threads:
    found = list(threads.map(have, range(2)))
left = [name for name in os.environ if name.startswith("PYSPARK_GATEWAY")]
print(json.dumps([len(started), found[0] is found[1], found[0].range(3).count(), left]))
"""


def test_one_java_is_started_for_both_and_no_variable_of_it_is_left() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CODE], env=dict(os.environ), capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == [1, True, 3, []]
