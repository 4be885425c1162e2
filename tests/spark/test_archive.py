"""A class data archive is taken where it is whole, this user's own and fits; else it is left aside without a word."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from keptlog.spark.archive import fitting_archive, with_archive
from keptlog.spark.launch import spark_home

_TASK = """
import sys
from keptlog.spark.session import start_spark
spark = start_spark("local[1]", dict(line.split("=", 1) for line in sys.argv[1:]))
assert spark.parallelize(range(3), 1).count() == 3
beans = spark._jvm.java.lang.management.ManagementFactory
print(*beans.getRuntimeMXBean().getInputArguments(), sep="\\n")
"""
_OF_ONE_FILE = 20_000_000


def environment_of(cache: Path, **more: str) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name != "SPARK_SUBMIT_OPTS"}
    return {**own, "XDG_CACHE_HOME": str(cache), **more}


def told_by(words: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "keptlog", *words], env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with an archive that the command has made."""
    folder = tmp_path_factory.mktemp("with a space") / 'and "quotes"'
    folder.mkdir()
    done = told_by(["spark-archive", "--json"], environment_of(folder))
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    path = Path(told["archive"])
    assert list((folder / "keptlog").iterdir()) == [path]
    assert path.stat().st_size == told["bytes"] > _OF_ONE_FILE
    assert path.stat().st_mode & 0o777 == 0o644
    return folder


@pytest.fixture
def copied(cache: Path, tmp_path: Path) -> Path:
    """A copy of the archive, in the folder of this test's own."""
    shutil.copytree(cache / "keptlog", tmp_path / "keptlog")
    (path,) = (tmp_path / "keptlog").iterdir()
    return path


def options_of_java(environment: Mapping[str, str], *settings: str) -> str:
    """What a Spark that keptlog starts tells its Java; neither says anything on stderr."""
    done = subprocess.run(
        [sys.executable, "-c", _TASK, *settings], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


def test_spark_loads_its_classes_from_the_archive(cache: Path, tmp_path: Path) -> None:
    seen = tmp_path / "classes.txt"
    listing = f"spark.driver.extraJavaOptions=-Xlog:class+load:file={seen}"
    assert "-XX:SharedArchiveFile=" in options_of_java(environment_of(cache), listing)
    # Scala's closures are classes that each Java makes anew.
    of_spark = [line for line in seen.read_text().splitlines() if " org.apache.spark." in line]
    lines = [line for line in of_spark if "Lambda" not in line]
    shared = [line for line in lines if "shared objects file" in line]
    assert len(shared) > len(lines) * 0.9 > 500


def _truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _one_bit(path: Path) -> None:
    """Behind the head, which is all that Java looks at itself."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _of_everybody(path: Path) -> None:
    path.chmod(0o666)


def _folder_of_everybody(path: Path) -> None:
    path.parent.chmod(0o777)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _gone(path: Path) -> None:
    path.unlink()


def _dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent / "nowhere")


_SPOILED = [_truncated, _zeros, _one_bit, _folder, _of_everybody, _folder_of_everybody, _empty, _gone, _dangling]


@pytest.mark.parametrize("spoil", _SPOILED)
def test_java_does_not_see_one_that_is_not_as_it_was_written(copied: Path, spoil: Callable[[Path], None]) -> None:
    environment = environment_of(copied.parents[1])
    assert fitting_archive(environment, spark_home()) == copied
    spoil(copied)
    assert fitting_archive(environment, spark_home()) is None
    assert with_archive(environment, {}, spark_home()) == environment


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads all: try as another user")
def test_one_that_can_not_be_read_is_none(copied: Path) -> None:
    copied.chmod(0)
    assert fitting_archive(environment_of(copied.parents[1]), spark_home()) is None


@pytest.mark.parametrize("spoil", [_truncated, _folder])
def test_spark_starts_without_a_word_beside_a_broken_one(copied: Path, spoil: Callable[[Path], None]) -> None:
    spoil(copied)
    assert "SharedArchiveFile" not in options_of_java(environment_of(copied.parents[1]))


def test_spark_starts_without_a_word_with_one_that_fits_other_libraries(copied: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    told = options_of_java(environment_of(copied.parents[1]), f"spark.driver.extraClassPath={more}")
    assert str(copied) in told


@pytest.mark.parametrize("name", ["SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"])
@pytest.mark.parametrize("theirs", ["-XX:SharedArchiveFile=/mine.jsa", "-Xshare:off", "-XX:ArchiveClassesAtExit=/a"])
def test_what_a_user_tells_java_about_archives_goes_before(cache: Path, name: str, theirs: str) -> None:
    environment = environment_of(cache, **{name: f"-Da=b {theirs}"})
    assert with_archive(environment, {}, spark_home()) == environment


def test_so_does_a_setting_of_spark_and_other_options_stay(cache: Path) -> None:
    environment = environment_of(cache, SPARK_SUBMIT_OPTS="-Dmine=kept")
    theirs = {"spark.driver.extraJavaOptions": "-XX:SharedArchiveFile=/mine.jsa"}
    assert with_archive(environment, theirs, spark_home()) == environment
    assert "-Dmine=kept" in options_of_java(environment)
    assert with_archive(environment, {}, spark_home()) != environment


def test_a_new_one_takes_the_place_of_the_old_and_remove_removes(copied: Path) -> None:
    environment = environment_of(copied.parents[1])
    left = copied.parent / "of-a-killed-one.part"
    left.mkdir()
    done = told_by(["spark-archive"], environment)
    assert (done.returncode, done.stderr) == (0, "")
    (path,) = copied.parent.iterdir()
    assert done.stdout.startswith(f"{path}: ")
    assert "keptlog spark-archive --remove" in done.stdout
    assert told_by(["spark-archive", "--remove"], environment).stdout == f"removed {path}\n"
    assert list(copied.parent.iterdir()) == []
    assert told_by(["spark-archive", "--remove"], environment).stdout == "there is no archive\n"


def _no_java(folder: Path) -> dict[str, str]:
    return {"JAVA_HOME": str(folder / "none")}


def _unknown_java(folder: Path) -> dict[str, str]:
    (folder / "jdk" / "bin").mkdir(parents=True)
    java = folder / "jdk" / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    java.chmod(0o755)
    return {"JAVA_HOME": str(folder / "jdk")}


def _no_folder(folder: Path) -> dict[str, str]:
    (folder / "file").write_text("")
    return {"XDG_CACHE_HOME": str(folder / "file")}


def _no_archives_of_folders(folder: Path) -> dict[str, str]:
    """Java archives no classes while a folder with files is among its libraries."""
    (folder / "conf").mkdir()
    (folder / "conf" / "spark-env.txt").write_text("")
    return {"SPARK_CONF_DIR": str(folder / "conf")}


def _told_already(_: Path) -> dict[str, str]:
    return {"SPARK_SUBMIT_OPTS": "-XX:SharedArchiveFile=/mine.jsa"}


def _two_paths(folder: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(folder / "a:b")}


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_no_java, "there is no Java where"),
        (_unknown_java, "does not say which one it is"),
        (_no_folder, "can't be written"),
        (_no_archives_of_folders, "conf is one: let SPARK_CONF_DIR name an empty folder"),
        (_two_paths, "Java takes "),
        (_told_already, "Java is told about archives in its environment"),
    ],
)
def test_who_can_not_make_one_is_told_why_in_one_line(
    tmp_path: Path, spoil: Callable[[Path], dict[str, str]], said: str
) -> None:
    done = told_by(["spark-archive"], environment_of(tmp_path, **spoil(tmp_path)))
    assert done.returncode in {1, 2}
    assert done.stderr.count("\n") == 1, done.stderr
    assert said in done.stderr
    assert not list(tmp_path.rglob("*.jsa"))
    assert not list(tmp_path.rglob("*.part"))


def test_a_disk_that_is_full_leaves_nothing(tmp_path: Path) -> None:
    def no_large_file() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (_OF_ONE_FILE, _OF_ONE_FILE))

    command = [sys.executable, "-m", "keptlog", "spark-archive"]
    environment = environment_of(tmp_path)
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, preexec_fn=no_large_file
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1, done.stderr
    assert "has written no archive" in done.stderr
    assert list((tmp_path / "keptlog").iterdir()) == []


@pytest.fixture
def making(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has begun to make one."""
    command = [sys.executable, "-m", "keptlog", "spark-archive"]
    with subprocess.Popen(command, env=environment_of(tmp_path), stderr=subprocess.PIPE, text=True) as process:
        while not list(tmp_path.glob("keptlog/*.part")):
            assert process.poll() is None
            time.sleep(0.05)
        yield process
        process.kill()


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_who_is_interrupted_leaves_nothing_and_one_makes_it_at_a_time(
    making: subprocess.Popen[str], tmp_path: Path, by: signal.Signals
) -> None:
    refused = told_by(["spark-archive"], environment_of(tmp_path))
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "another process is making an archive" in refused.stderr
    making.send_signal(by)
    _, said = making.communicate(timeout=300)
    assert making.returncode == 130, said
    assert list((tmp_path / "keptlog").iterdir()) == []
