"""The making of a class data archive (``archive.py``): a Spark does what it does for a small clean, then Java writes.

The tasks go the way of a clean's tasks, and there is nothing in them. So the archive has the classes that a clean
takes, and nothing of any log. No home is looked at, so that no setting with a password gets there either.

Java writes the file when it ends. It gets its name when it is whole; of whoever is interrupted nothing is left, and of
whoever is killed a folder that the next one removes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.spark.archive import (
    OPTIONS,
    QUIET,
    SUFFIX,
    JavaAndSpark,
    archives_for,
    cache_folder,
    name_of,
    option,
    pair_of,
    says_of_archives,
)
from keptlog.spark.driver import Spark
from keptlog.spark.java import Java, end
from keptlog.spark.launch import own_java, spark_home, with_variables
from keptlog.spark.prospect import require_java
from keptlog.spark.session import start_spark
from keptlog.whole_file import sync

_UNFINISHED = ".part"
_ROOM_BYTES = 300_000_000
"""Twice what the largest took."""
_DEADLINE_SECONDS = 600
_READABLE = 0o644
_OWN_FOLDER = 0o755
_MB = 1_000_000


@dataclass(frozen=True)
class Archive:
    """One that was made: where it is, and for whom."""

    path: Path
    size_bytes: int
    pair: JavaAndSpark


def make_archive(work: Callable[[Spark], None], environment: Mapping[str, str]) -> Archive:
    """Let a local Spark do ``work``, and Java write down which classes that took; an older one is replaced.

    It starts a Spark in this process, and ends it: no other may be there.

    Raises:
        InvalidConfig: there is no Java that could write one or take it, its folder can't be written, or another makes
            one.
        StorageUnavailable: there is no room, or Java has not written it.
    """
    require_java(environment)
    pair = pair_of(environment, spark_home())
    if pair is None:
        raise InvalidConfig(
            "this Java does not say which one it is: let JAVA_HOME lead to the folder with its file release"
        )
    if says_of_archives(environment, {}):
        raise InvalidConfig(f"Java is told about archives in its environment ({OPTIONS} or the like): unset that")
    if conf := _conf_with_files(environment):
        raise InvalidConfig(
            f"Java takes no archive while a folder with files is among its libraries, and {conf} is one: let "
            "SPARK_CONF_DIR name an empty folder, where an archive is made and where it is taken"
        )
    with _folder_to_write_in(environment) as folder:
        archive = folder / f"spark{SUFFIX}"
        given = f"{option('ArchiveClassesAtExit', archive)} {QUIET} {environment.get(OPTIONS, '')}".rstrip()
        with with_variables({OPTIONS: given}):
            _work_until_java_ends(work)
        if not archive.is_file() or not archive.stat().st_size:
            raise StorageUnavailable(_none_written(pair, folder.parent))
        archive.chmod(_READABLE)
        path = folder.parent / name_of(pair, archive)
        sync(archive)
        archive.replace(path)
        for older in archives_for(pair, path.parent):
            if older != path:
                older.unlink(missing_ok=True)
    return Archive(path, path.stat().st_size, pair)


def remove_archives(environment: Mapping[str, str]) -> list[Path]:
    """Remove all of this user's archives; gives those that were there. A Java that runs keeps what it has opened.

    Raises:
        InvalidConfig: one can't be removed.
    """
    folder = _cache_folder(environment)
    found = sorted(folder.glob(f"spark-*{SUFFIX}"))
    try:
        for path in found:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidConfig(f"{error.filename} can't be removed ({error.strerror})") from None
    return found


@contextmanager
def _folder_to_write_in(environment: Mapping[str, str]) -> Iterator[Path]:
    """A folder that is gone after the block, in that of the archives; of one maker at a time."""
    folder = _cache_folder(environment)
    try:
        folder.mkdir(_OWN_FOLDER, parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise InvalidConfig(_cannot_write(folder, error)) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidConfig(f"another process is making an archive in {folder}: let it end") from None
        for left in folder.glob(f"*{_UNFINISHED}"):
            shutil.rmtree(left, ignore_errors=True)
        free_bytes = shutil.disk_usage(folder).free
        if free_bytes < _ROOM_BYTES:
            raise StorageUnavailable(
                f"{folder} has {free_bytes // _MB} MB of room, and Java needs {_ROOM_BYTES // _MB} for an archive: "
                "make room, or set XDG_CACHE_HOME to a folder that has it"
            )
        try:
            made = tempfile.TemporaryDirectory(suffix=_UNFINISHED, dir=folder, ignore_cleanup_errors=True)
        except OSError as error:
            raise InvalidConfig(_cannot_write(folder, error)) from None
        with made as name:
            yield Path(name)
    finally:
        os.close(descriptor)


def _conf_with_files(environment: Mapping[str, str]) -> Path | None:
    """Spark's folder of settings, which is always among its libraries; null if it has nothing, or is not there."""
    folder = Path(environment.get("SPARK_CONF_DIR") or Path(spark_home(), "conf"))
    try:
        return folder if any(folder.iterdir()) else None
    except OSError:
        return None


def _work_until_java_ends(work: Callable[[Spark], None]) -> None:
    java: Java | None = None
    try:
        spark: Any = start_spark("local[*]")
        java = own_java()
        work(spark)
        spark.stop()
        java.words.hold()
        # It ends by itself when its stdin does, and only then it writes.
        cast("IO[bytes]", java.process.stdin).close()
        java.process.wait(_DEADLINE_SECONDS)
    except subprocess.TimeoutExpired:
        raise StorageUnavailable(f"Java has not written its archive within {_DEADLINE_SECONDS} s: try again") from None
    finally:
        if java:
            end(java.process)


def _cache_folder(environment: Mapping[str, str]) -> Path:
    try:
        folder = cache_folder(environment)
        option("SharedArchiveFile", folder)
    except OSError as error:
        raise InvalidConfig(f"there is no folder for archives ({error}): set XDG_CACHE_HOME") from None
    return folder


def _cannot_write(folder: Path, error: OSError) -> str:
    return f"{folder} can't be written ({error.strerror}): set XDG_CACHE_HOME to a folder that can"


def _none_written(pair: JavaAndSpark, folder: Path) -> str:
    return (
        f"Java {pair.java} has written no archive in {folder}: the disk is full, or this Java can't write one; that of "
        "apt-get install openjdk-17-jre-headless can"
    )
