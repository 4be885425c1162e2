"""What Spark tells in sixty lines, in one, with the kind that says who is at fault."""

from __future__ import annotations

import errno
import tempfile
from typing import Any

import pytest
from botocore.exceptions import ClientError

from keptlog.engine.jobs import final_error_of
from keptlog.errors import Action, InvalidConfig, InvariantViolated, KeptlogError, SparkUnavailable, StorageUnavailable
from keptlog.spark.failures import as_keptlog_error, in_one_line, told_in_one_line
from keptlog.spark.worker import in_a_task
from keptlog.storage.refusal import StoreRefused
from keptlog.table.io.s3_errors import reaching_store

_ABORTED = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task 0.3 in "
)
_TRACEBACK = "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n  File …\n"


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        (f"{_TRACEBACK}ModuleNotFoundError: No module named 'pyarrow'", InvalidConfig, "no module 'pyarrow'"),
        (
            f"{_TRACEBACK}RuntimeError: keptlog task failed: ModuleNotFoundError: No module named 'pyiceberg'",
            InvalidConfig,
            "no module 'pyiceberg': pip install pyiceberg",
        ),
        (
            f"{_TRACEBACK}pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in "
            "worker has different version: 3.9 than that in driver: 3.11, PySpark cannot run with different minor …",
            InvalidConfig,
            "different version: 3.9 than that in driver: 3.11: let PYSPARK_PYTHON",
        ),
        (
            f'{_ABORTED}stage 0.0: java.io.IOException: Cannot run program "python9": error=2, No such file',
            InvalidConfig,
            "no Python at python9",
        ),
        (
            f"{_ABORTED}stage 1.0 (TID 3): ExecutorLostFailure (executor 0 exited unrelated to the running tasks) "
            "Reason: worker lost\nDriver stacktrace:",
            SparkUnavailable,
            "Reason: worker lost; nothing was committed",
        ),
        ("Job aborted: Master removed our application: KILLED", SparkUnavailable, "Master removed our application"),
        ("Job 3 cancelled because SparkContext was shut down", SparkUnavailable, "SparkContext was shut down"),
        (
            "ShuffleMapStage 3 has failed the maximum allowable number of times: 4. Most recent failure reason:\n"
            "org.apache.spark.shuffle.FetchFailedException: Connection refused",
            SparkUnavailable,
            "FetchFailedException",
        ),
        (
            f"{_ABORTED}stage 1.0 (TID 3): ExecutorLostFailure (executor 0 exited caused by one of the running tasks) "
            "Reason: Container killed by YARN for exceeding memory limits",
            StorageUnavailable,
            "Spark failed while rewriting",
        ),
        (
            f"{_TRACEBACK}RuntimeError: keptlog task failed: InvariantViolated: a winner is missing",
            InvariantViolated,
            "a winner is missing",
        ),
        (
            f"{_TRACEBACK}RuntimeError: keptlog task failed: MemoryError: out of ExecutorLostFailure",
            StorageUnavailable,
            "MemoryError",
        ),
    ],
)
def test_each_failure_has_its_kind_and_one_line(text: str, kind: type[KeptlogError], told: str) -> None:
    error = as_keptlog_error(RuntimeError(text), "rewriting 3 logs")
    assert type(error) is kind
    assert told in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("error", "action"),
    [
        (StorageUnavailable("a folder can't be read: let it"), Action.RETRY),
        (StorageUnavailable("a folder can't be read: let it").for_good(), Action.FIX_STORAGE),
        (StorageUnavailable("a file of the catalog (the newest) is lost").of_damage(), Action.FIX_DATA),
        (InvariantViolated("a winner is missing"), Action.REPORT_BUG),
        (OSError(errno.ENOSPC, "No space left on device", "/data"), Action.FIX_STORAGE),
        (StoreRefused("s3://lake/a can't be written", "ExpiredToken"), Action.FIX_STORAGE),
        (PermissionError(errno.EACCES, "Permission denied", "/data/a.parquet"), Action.FIX_STORAGE),
    ],
)
def test_what_helps_is_told_of_what_a_task_has_ended_with(error: Exception, action: Action) -> None:
    with pytest.raises(RuntimeError) as ended, in_a_task():
        raise error
    told = as_keptlog_error(RuntimeError(f"{_TRACEBACK}RuntimeError: {ended.value}\n"), "rewriting 3 logs")
    final = final_error_of(error)
    assert (type(told), str(told), told.action) == (type(final), str(final), action)


def test_what_a_store_denies_is_no_right_of_a_user_of_this_machine() -> None:
    answer: Any = {"Error": {"Code": "Forbidden", "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": 403}}
    with pytest.raises(PermissionError) as denied, reaching_store("s3://lake/a can't be read"):
        raise ClientError(answer, "GetObject")
    assert str(final_error_of(denied.value)) == (
        "a task: s3://lake/a can't be read: Forbidden: no; nothing was committed: see to its permissions, then run it "
        "again"
    )


def test_a_java_that_is_gone_is_nobodys_fault() -> None:
    error = as_keptlog_error(ConnectionRefusedError(111, "Connection refused"), "rewriting 3 logs")
    assert type(error) is SparkUnavailable


def test_what_was_told_inside_is_told_outside_as_it_is_and_still_says_what_it_came_of() -> None:
    refused = ConnectionRefusedError(111, "Connection refused")
    with (
        pytest.raises(SparkUnavailable, match="lost while counting its cores") as told,
        told_in_one_line("rewriting 3 logs"),
        told_in_one_line("counting its cores"),
    ):
        raise refused
    assert told.value.__cause__ is refused


def test_an_error_of_ours_that_came_of_nothing_comes_of_nothing_afterwards() -> None:
    with pytest.raises(InvalidConfig) as told, told_in_one_line("rewriting 3 logs"):
        raise InvalidConfig("the workers lack something")
    assert told.value.__cause__ is None


def test_a_disk_that_refuses_what_java_is_to_read_is_told_by_its_path() -> None:
    refused = OSError(errno.EROFS, "Read-only file system", "/scratch/pyspark-1")
    assert str(as_keptlog_error(refused, "rewriting 3 logs", "/elsewhere")).startswith(
        "rewriting 3 logs: the disk of /scratch/pyspark-1 can't be written to; nothing landed"
    )
    unnamed = OSError(errno.ENOSPC, "No space left on device")
    full = as_keptlog_error(unnamed, "rewriting 3 logs")
    assert f"the disk of {tempfile.gettempdir()} is full" in str(full)
    assert full.action is Action.FIX_STORAGE


def test_what_java_said_is_told_and_not_that_it_was_called() -> None:
    said = "All masters are unresponsive! Giving up."
    called = "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
    assert in_one_line(RuntimeError(f"{called}: org.apache.spark.SparkException: {said}\n\tat org.apache")) == said
    assert in_one_line(RuntimeError("no Java in it")) == "no Java in it"


@pytest.mark.parametrize("host", ["server-room-1.corp", "spark-bloom-2", "memory-2", "oom"])
@pytest.mark.parametrize(
    "lost",
    [
        "ExecutorLostFailure (executor 2 exited unrelated to the running tasks) Reason: worker at {} gone",
        "FetchFailed(BlockManagerId(2, {}, 7337, None), shuffleId=0, mapIndex=0, mapId=1, reduceId=0, message=",
        "FetchFailedException: Failed to connect to {}/10.0.0.7:7337",
    ],
)
def test_a_host_whose_name_sounds_like_memory_is_lost_as_any_other(host: str, lost: str) -> None:
    error = as_keptlog_error(RuntimeError(f"{_ABORTED}stage 1.0: {lost.format(host)}"), "rewriting 3 logs")
    assert type(error) is SparkUnavailable


@pytest.mark.parametrize(
    "reason",
    [
        "Container killed by YARN for exceeding physical memory limits. 5.5 GB of 5.5 GB physical memory used",
        "The executor with id 1 exited with exit code 137(SIGKILL, possible container OOM).",
        "Container was OOMKilled",
    ],
)
def test_an_executor_that_used_more_memory_than_it_was_given_may_be_the_logs_fault(reason: str) -> None:
    lost = f"ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: {reason}"
    error = as_keptlog_error(RuntimeError(f"{_ABORTED}stage 1.0: {lost}"), "rewriting 3 logs")
    assert type(error) is StorageUnavailable


@pytest.mark.parametrize(
    "why",
    [
        "error=11, Resource temporarily unavailable",
        "error=12, Cannot allocate memory",
        "error=23, Too many open files in system",
        "error=24, Too many open files",
        "error=28, No space left on device",
        "Exec failed, error: 24 (Too many open files)",
    ],
)
def test_a_machine_with_no_room_for_one_more_process_is_told_so_and_no_python_is_missed(why: str) -> None:
    text = f'{_ABORTED}stage 0.0: java.io.IOException: Cannot run program "python9": {why}\n\tat java.base'
    error = as_keptlog_error(RuntimeError(text), "rewriting 3 logs")
    assert type(error) is SparkUnavailable
    assert why in str(error)
    assert "PYSPARK_PYTHON" not in str(error)


@pytest.mark.parametrize(
    "why",
    [
        "error=2, No such file or directory",
        "error=8, Exec format error",
        "error=13, Permission denied",
        "Exec failed, error: 2 (No such file or directory)",
    ],
)
def test_a_python_that_is_not_there_or_can_not_be_run_is_to_be_named(why: str) -> None:
    text = f'{_ABORTED}stage 0.0: java.io.IOException: Cannot run program "python9" (in directory "."): {why}'
    error = as_keptlog_error(RuntimeError(text), "rewriting 3 logs")
    assert type(error) is InvalidConfig
    assert "no Python at python9: let PYSPARK_PYTHON name theirs" in str(error)


def test_a_program_that_java_can_not_start_for_another_reason_is_told_as_java_tells_it() -> None:
    why = "error=0, Failed to exec spawn helper: pid: 7, exit value: 1"
    error = as_keptlog_error(RuntimeError(f'Cannot run program "python9": {why}'), "rewriting 3 logs")
    assert type(error) is StorageUnavailable
    assert why in str(error)
