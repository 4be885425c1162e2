"""A Java that is on its way is there once, for whoever asks first, and is ended where nobody does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

_BEGIN = """
import os, time
from keptlog.spark.launch import java_ahead
from keptlog.spark.session import start_spark
from tests.processes import children, descendants

def javas():
    # What is below them are the scripts by which each becomes Java.
    return {each.pid for each in children(os.getpid())}
"""
_NOT_TAKEN = """
with java_ahead("local[1]", {}) as use:
    print(len(javas()))
    use.keep(0.5)
while javas():
    time.sleep(0.05)
print("ended")
"""
_LEFT = """
with java_ahead("local[1]", {}) as use:
    use.keep(600)
(kept,) = javas()
print(kept)
"""
_FAILED = """
try:
    with java_ahead("local[1]", {}) as use:
        use.keep(600)
        raise ValueError
except ValueError:
    print(javas())
"""
_TAKEN = """
from keptlog.spark import launch
later = []
class Timer(launch.threading.Timer):
    def start(self):
        later.append(self)
launch.threading.Timer = Timer
with java_ahead("local[1]", {}) as use:
    use.keep(1)
    with java_ahead("local[1]", {}):
        pass
(kept,) = javas()
spark = start_spark("local[1]")
(timer,) = later
timer.function(*timer.args)
print(kept in javas(), spark.parallelize([1, 2]).sum())
with java_ahead("local[1]", {}):
    print(kept in javas(), sum("SparkSubmit" in each.command for each in descendants(os.getpid())))
spark.stop()
"""
_OTHER_SETTINGS = """
with java_ahead("local[1]", {}) as use:
    use.keep(600)
(kept,) = javas()
spark = start_spark("local[1]", {"spark.driver.memory": "512m"})
print(kept in javas(), spark.getConf().get("spark.driver.memory"))
spark.stop()
"""


def told(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", _BEGIN + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_one_that_is_kept_and_that_nobody_asks_for_is_ended_after_its_time() -> None:
    assert told(_NOT_TAKEN) == ["1", "ended"]


def test_one_that_is_kept_ends_with_its_process_also_if_that_ends_before_java_has_come_up() -> None:
    (pid,) = told(_LEFT)
    is_there = Path(f"/proc/{pid}").exists()
    if is_there:
        os.kill(int(pid), signal.SIGKILL)
    assert not is_there


def test_one_is_not_kept_where_the_block_fails() -> None:
    assert told(_FAILED) == ["set()"]


def test_one_that_is_kept_is_taken_by_the_next_spark_and_not_ended_under_it() -> None:
    assert told(_TAKEN) == ["True 3", "True 1"]


def test_one_with_other_settings_than_are_asked_for_is_ended() -> None:
    assert told(_OTHER_SETTINGS) == ["False 512m"]
