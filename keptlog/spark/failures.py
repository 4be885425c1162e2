"""What Spark tells in sixty lines, in one: what failed, who is at fault, what to do.

    a task's own error (worker.py)                        as the task raised it
    a module that workers lack, another Python            InvalidConfig: every task of every log would fail so
    an executor, worker, master, server, shuffled keys    SparkUnavailable: they are lost; nobody's fault, try again
    a machine with no room for one more process           SparkUnavailable: with the reason that Java gives
    this machine's disk refuses what Java is to read      StorageUnavailable: which disk, and why
    whatever else                                         StorageUnavailable: Spark failed, who knows why

Spark says it in prose, so it is known by its words. Words that are not known make no difference but to the last line: a
log that is tried alone and fails so again and again may be at fault, as one whose worker runs out of memory each time.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from keptlog.disk import refusal_of, refusal_text
from keptlog.engine.jobs import error_named
from keptlog.errors import InvalidConfig, KeptlogError, SparkUnavailable, StorageUnavailable, first_line
from keptlog.spark.worker import FAILED

_TASK_FAILED = re.compile(f"{FAILED}(.*)")
_PYTHON_ERROR = re.compile(r"^((?:\w+\.)*\w+(?:Error|Exception): .*)", re.MULTILINE)
"""The last line of a worker's own traceback, when it failed before or after the task."""
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_NO_PYTHON = re.compile(r'Cannot run program "([^"]*)"[^\n]*?\berror(?:=|: )(?:2|8|13|20)\b')
"""No such file, one of another machine's kind, one that may not be run, or no folder where one must be.

Java 17 writes ``error=2, No such file …``, a newer one ``error: 2 (No such file …)``."""
_OTHER_PYTHON = re.compile(r"\[PYTHON_VERSION_MISMATCH\] (.*?)(?:, PySpark|\. Please|$)", re.MULTILINE)
_LOST = re.compile(
    r"(ExecutorLostFailure[^\n]*|FetchFailed[^\n]*|MetadataFetchFailed[^\n]*|executor heartbeat timed out[^\n]*"
    r"|Master removed our application[^\n]*|All masters are unresponsive[^\n]*|SparkContext was shut down"
    r"|stopped SparkContext|INVALID_HANDLE\.SESSION[^\n]*|Answer from Java side is empty"
    r"|Error while sending or receiving"
    # A machine that has no room for one more process now: retry, no memory, too many files (two kinds), a full disk.
    r"|Cannot run program \"[^\n]*?\berror(?:=|: )(?:11|12|23|24|28)\b[^\n]*)"
)
_JAVA_SAID = re.compile(r"^: (?:[\w$]+\.)+[\w$]+: (.+)$", re.MULTILINE)
"""The second line of what Py4J tells."""
_CAUSED_BY = re.compile(r"^Caused by: (?:[\w$]+\.)+[\w$]+: (.+)$", re.MULTILINE)
_OUT_OF_MEMORY = re.compile(
    r"exceed\w* .*\bmemory\b|\bmemory limits?\b|\bdirect memory\b|(?<![\w.-])(?-i:OOM|OOMKilled)(?![\w-])"
    r"|\bOutOf(?:Direct)?MemoryError\b",
    re.IGNORECASE,
)
"""What a container's watchdog says of a lost executor that used more than it was given: that may be the log.

Whole phrases, for the line names hosts too: one may be called ``server-room-1`` or ``memory-2``."""
_NO_CONNECTION = ("Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError", "BrokenPipeError", "EOFError")
_NO_ANSWER = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "ABORTED")
_DETAILS = re.compile(r'details = "(.*)"')
_CONFIG = "nothing was committed, and no log is held to be at fault"


@contextmanager
def told_in_one_line(doing: str, folder: str | None = None) -> Iterator[None]:
    """Around all that Spark is asked for: any call, not the job's alone, may be the one that finds it gone.

    Raises:
        KeptlogError: whatever Spark raised, as ``as_keptlog_error`` tells it. One that is ours already passes as it is:
            it would become its own cause, and what it really came of would be lost.
    """
    try:
        yield
    except KeptlogError:
        raise
    except Exception as error:
        raise as_keptlog_error(error, doing, folder) from error


def as_keptlog_error(error: BaseException, doing: str, folder: str | None = None) -> KeptlogError:
    """One line for what Spark raised; ``doing`` says to people what it did.

    ``folder`` is where this process writes what Java is to read, if not where any program has its temporary files.
    An error of writing knows no path.
    """
    refused = refusal_of(error)
    if refused:
        path = getattr(error, "filename", None) or folder or tempfile.gettempdir()
        return StorageUnavailable(refusal_text(doing, path, refused)).for_good()
    text = str(error)
    task_failed = _TASK_FAILED.search(text)
    set_up = None if task_failed and not _NO_MODULE.search(task_failed.group(1)) else _wrong_setup(text)
    if set_up:
        return InvalidConfig(f"Spark failed while {doing}: {set_up}; {_CONFIG}")
    if task_failed:
        return _of_a_task(task_failed.group(1).strip(), doing)
    lost = _what_is_lost(error, text)
    if lost:
        return SparkUnavailable(f"Spark was lost while {doing}: {lost}; nothing was committed, try again")
    found = _PYTHON_ERROR.search(text)
    return _of_a_task(found.group(1).strip() if found else in_one_line(error), doing)


def grpc_status(error: BaseException) -> tuple[str, str] | None:
    """The code of a gRPC error, however it is wrapped, and its one line without the dump around; null if it is none."""
    code = getattr(error, "getGrpcStatusCode", None) or getattr(error, "code", None)
    if not callable(code):
        return None
    found = _DETAILS.search(str(error))
    return str(getattr(code(), "name", code())), found.group(1) if found else first_line(error)


def in_one_line(error: BaseException) -> str:
    """What an error says; of one that came from Java what was said there, without the name of its class."""
    found = _JAVA_SAID.search(str(error))
    return found.group(1).strip() if found else first_line(error)


def with_cause(error: BaseException) -> str:
    """The same, with what Java says it came of."""
    told, causes = in_one_line(error), _CAUSED_BY.findall(str(error))
    return told if not causes or causes[-1].strip() in told else f"{told.rstrip('.')}: {causes[-1].strip()}"


def _of_a_task(reason: str, doing: str) -> KeptlogError:
    name, _, message = reason.partition(": ")
    return error_named(name, message) or StorageUnavailable(
        f"Spark failed while {doing}: {reason}; nothing was committed, try again"
    )


def _wrong_setup(text: str) -> str | None:
    """What the workers' machines are to be given; null if it is something else."""
    if found := _NO_MODULE.search(text):
        return (
            f"its workers have no module {found.group(1)!r}: pip install {found.group(1).partition('.')[0]} into their "
            "Python, or let PYSPARK_PYTHON name one that has it"
        )
    if found := _OTHER_PYTHON.search(text):
        return f"{found.group(1)}: let PYSPARK_PYTHON name the workers' Python of the same version"
    if found := _NO_PYTHON.search(text):
        return f"its workers have no Python at {found.group(1)}: let PYSPARK_PYTHON name theirs"
    return None


def _what_is_lost(error: BaseException, text: str) -> str | None:
    code, details = grpc_status(error) or ("", "")
    if code in _NO_ANSWER:
        return f"its Connect server does not answer ({details})"
    if type(error).__name__ in _NO_CONNECTION:
        return f"its Java process is gone ({type(error).__name__})"
    found = _LOST.search(text)
    return found.group(1).strip() if found and not _OUT_OF_MEMORY.search(found.group(1)) else None
