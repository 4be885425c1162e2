"""A Java that does not start says why in one line, and one that nobody waits for any more is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyspark
import pytest

from keptlog.errors import InvalidConfig
from keptlog.home import open_home
from keptlog.log.record import NewRecord
from keptlog.spark.java import INSTALL_JAVA, StartingJava, why_none

SUBMIT = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")


@pytest.mark.parametrize(("memory", "reason"), [("1x", "Invalid maximum heap size"), ("1k", "Too small maximum heap")])
def test_a_setting_that_java_does_not_accept_is_told_and_nothing_is_left(
    capfd: pytest.CaptureFixture[str], memory: str, reason: str
) -> None:
    told = {**os.environ, "JAVA_TOOL_OPTIONS": "-Dmine=1"}
    with pytest.raises(InvalidConfig, match=f"Spark could not be started with its settings: {reason}"):
        StartingJava([SUBMIT, "--driver-memory", memory, "pyspark-shell"], told).wait()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([], INSTALL_JAVA),
        (["JAVA_HOME is not set"], INSTALL_JAVA),
        (["spark-class: line 71: /usr/lib/jvm/none/bin/java: No such file or directory"], INSTALL_JAVA),
        (["Unrecognized option: --add-modules=jdk.incubator.vector", "Error: Could not create"], INSTALL_JAVA),
        (
            [
                "WARNING: Using incubator modules: jdk.incubator.vector",
                'Exception in thread "main" org.apache.spark.SparkException: Could not parse Master URL: "nonsense"',
                "\tat org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)",
                "Caused by: java.lang.Error: x",
            ],
            'Spark could not be started with its settings: Could not parse Master URL: "nonsense"; mend '
            "KEPTLOG_SPARK_MASTER, spark.properties in the home, or spark_config in Dagster",
        ),
        (
            [
                "11:50:39 Spark ERROR DiskBlockManager: Failed to create local dir in /gone. Ignoring this directory.",
                "java.io.IOException: Failed to create a temp directory (under /gone) after 10 attempts!",
                "11:50:39 Spark ERROR DiskBlockManager: Failed to create any local dir.",
            ],
            "Spark could not be started: Failed to create local dir in /gone: let SPARK_LOCAL_DIRS, or "
            "spark.local.dir, name a folder that it can write to",
        ),
    ],
)
def test_what_java_wrote_is_told_without_its_stack(lines: list[str], told: str) -> None:
    assert why_none(lines) == told


def test_a_java_that_ends_before_there_is_a_session_says_why_and_what_to_do(tmp_path: Path) -> None:
    store = open_home(tmp_path / "home").store
    store.create_topic("users", 1, {"cleanup.policy": "compact"})
    store.append("users", [NewRecord(b"a", b"1", 1_700_000_000_000, 0)], "first", 1_700_000_000_000)
    (tmp_path / "file").touch()
    no_folder = str(tmp_path / "file" / "of-spark")
    environment = {
        **os.environ,
        "KEPTLOG_HOME": str(tmp_path / "home"),
        "KEPTLOG_SPARK_MASTER": "local[1]",
        "SPARK_LOCAL_DIRS": no_folder,
    }
    command = [sys.executable, "-m", "keptlog", "clean", "users"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[1:] == [
        f"keptlog: no Spark session could be started: its Java has ended: Failed to create local dir in {no_folder}: "
        "let SPARK_LOCAL_DIRS, or spark.local.dir, name a folder that it can write to"
    ]


def _children(process: int) -> set[str]:
    return set(Path(f"/proc/{process}/task/{process}/children").read_text().split())


def test_ctrl_c_while_java_starts_is_one_line_and_leaves_no_java(tmp_path: Path) -> None:
    store = open_home(tmp_path).store
    store.create_topic("users", 1, {"cleanup.policy": "compact"})
    store.append("users", [NewRecord(b"a", b"1", 1_700_000_000_000, 0)], "first", 1_700_000_000_000)
    environment = {**os.environ, "KEPTLOG_HOME": str(tmp_path), "KEPTLOG_SPARK_MASTER": "local[1]"}
    command = [sys.executable, "-m", "keptlog", "clean", "users"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, process_group=0) as process:
        assert process.stderr
        assert process.stderr.readline() == "to be cleaned: 1 of 1 log\n"
        while not (started := _children(process.pid)):
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert rest.strip() == "keptlog: stopped; nothing is lost, uncommitted work will be swept by a purge"
    assert not any(_is_alive(each) for each in started)


def test_a_java_that_was_started_ahead_is_gone_if_nothing_was_to_be_cleaned(tmp_path: Path) -> None:
    store = open_home(tmp_path).store
    store.create_topic("users", 1, {"cleanup.policy": "compact"})
    variables = {"KEPTLOG_HOME": str(tmp_path), "KEPTLOG_SPARK_MASTER": "local[1]"}
    # Folders of a Java on its way lie where this process looks for them.
    folder = tmp_path / "temporary"
    folder.mkdir()
    command = [sys.executable, "-m", "keptlog", "clean", "users"]
    environment = {**os.environ, **variables, "TMPDIR": str(folder)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        started: set[str] = set()
        while process.poll() is None:
            with suppress(OSError):
                started |= _children(process.pid)
        assert process.stderr
        assert process.stderr.read() == "to be cleaned: 0 of 1 log\n"
    assert process.returncode == 0
    assert started
    assert not any(_is_alive(each) for each in started)
    assert list(folder.iterdir()) == []


def _is_alive(process: str) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
