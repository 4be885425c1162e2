"""A class data archive: from it Java has the classes of Spark that it would else load and check at each start.

    ~/.cache/keptlog/spark-<Java and Spark>.<checksum>.jsa      written by ``keptlog spark-archive``, 70 MB

Every local Spark that keptlog starts takes it, if there is one for this Java and this Spark. It is for speed alone: one
that is missing, torn, of others or for others is left aside, and nobody is told. So Java never sees one that is not as
it was written. It compares only a few numbers at the file's head itself, and crashes over what it finds
behind them. What fits less closely, such as a library of Spark that was replaced, Java notices without a word.

Whoever tells Java something about archives himself is left to it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from keptlog.storage.crc32 import crc32

SUFFIX = ".jsa"
OPTIONS = "SPARK_SUBMIT_OPTS"
"""What stands here comes first among Java's options, so that a user's own of the same name goes over it."""
QUIET = "-Xlog:cds*=off"
"""Java has warnings about archives that it leaves aside."""
_OPTIONS_OF_USERS = (OPTIONS, "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_SETTINGS_OF_USERS = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
_ABOUT_ARCHIVES = re.compile(r"-XX:[+]?\w*(SharedArchive|ArchiveClassesAtExit|AOT)|-Xshare")
_CORE = "spark-core_*.jar"
_OTHERS_MAY_WRITE = 0o022
_CHUNK_BYTES = 1 << 20
_DIGITS = 12


@dataclass(frozen=True)
class JavaAndSpark:
    """A Java and a Spark, which an archive is made by and for."""

    java: str
    """Its version and who built it, as it says itself."""
    spark: str
    key: str
    """Differs as soon as one of them does, or lies elsewhere."""


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Where archives of this user lie.

    Raises:
        OSError: the user has no home.
    """
    given = Path(environment.get("XDG_CACHE_HOME", ""))
    # A relative one counts as none, says the specification.
    if given.is_absolute():
        return given / "keptlog"
    try:
        return Path.home() / ".cache" / "keptlog"
    except RuntimeError as error:
        raise FileNotFoundError(str(error)) from None


def pair_of(environment: Mapping[str, str], spark_home: Path) -> JavaAndSpark | None:
    """The Java and the Spark that would be started; null if they don't say what they are. Neither is."""
    home = environment.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else environment.get("PATH"))
    cores = sorted((spark_home / "jars").glob(_CORE))
    if java is None or not cores:
        return None
    java_home = Path(java).resolve().parents[1]
    try:
        release = (java_home / "release").read_text(errors="replace")
    except OSError:
        return None
    told = dict(re.findall(r'^(\w+)="(.*)"$', release, re.MULTILINE))
    seen = "\n".join([str(java_home), release, str(spark_home.resolve()), cores[0].name])
    version, builder = told.get("JAVA_RUNTIME_VERSION") or told.get("JAVA_VERSION", "?"), told.get("IMPLEMENTOR", "?")
    spark = cores[0].stem.rpartition("-")[2]
    return JavaAndSpark(f"{version} ({builder})", spark, hashlib.sha256(seen.encode()).hexdigest()[:_DIGITS])


def name_of(pair: JavaAndSpark, path: Path) -> str:
    """What an archive is called; ``path`` is where it lies now."""
    return f"spark-{pair.key}.{_checksum(path):08x}{SUFFIX}"


def archives_for(pair: JavaAndSpark, folder: Path) -> list[Path]:
    """Those that are called so, whole or not."""
    return sorted(folder.glob(f"spark-{pair.key}.*{SUFFIX}"))


def fitting_archive(environment: Mapping[str, str], spark_home: Path) -> Path | None:
    """The archive that Java may take; null if there is none."""
    with suppress(OSError):
        pair = pair_of(environment, spark_home)
        if pair:
            found = archives_for(pair, cache_folder(environment))
            return next((path for path in found if _is_safe(path) and path.name == name_of(pair, path)), None)
    return None


def with_archive(environment: Mapping[str, str], settings: Mapping[str, str], spark_home: Path) -> dict[str, str]:
    """The variables with which a local Spark is started: they lead to the archive, if there is one.

    ``settings`` are Spark's; nothing changes if they or the variables tell Java something about archives.
    """
    variables = dict(environment)
    archive = None if says_of_archives(environment, settings) else fitting_archive(environment, spark_home)
    if archive:
        variables[OPTIONS] = f"{option('SharedArchiveFile', archive)} {QUIET} {variables.get(OPTIONS, '')}".rstrip()
    return variables


def says_of_archives(environment: Mapping[str, str], settings: Mapping[str, str]) -> bool:
    """Whether a user tells Java something about archives, by variables or Spark's settings."""
    told = [environment.get(name, "") for name in _OPTIONS_OF_USERS]
    return bool(_ABOUT_ARCHIVES.search("\n".join([*told, *(settings.get(name, "") for name in _SETTINGS_OF_USERS)])))


def option(name: str, path: Path) -> str:
    """An option of Java's that is a path, as ``OPTIONS`` takes it.

    Raises:
        FileNotFoundError: Java can't be told of such a path, because it would take it for two.
    """
    if os.pathsep in str(path):
        raise FileNotFoundError(f"Java takes {path} for two paths")
    return f"-XX:{name}={in_quotes(path)}"


def in_quotes(path: Path) -> str:
    """A path within an option, as ``OPTIONS`` takes it: Spark cuts that as a shell would."""
    quoted = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'


def _is_safe(path: Path) -> bool:
    """Whether it is a file that nobody but this user, or root, could have written: Java runs what is in it."""
    is_ours = os.pathsep not in str(path)
    for each in (path, path.parent):
        told = each.stat()
        is_ours = is_ours and told.st_uid in {0, os.geteuid()} and not told.st_mode & _OTHERS_MAY_WRITE
    return is_ours and stat.S_ISREG(path.stat().st_mode)


def _checksum(path: Path) -> int:
    sum_ = 0
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK_BYTES):
            sum_ = crc32(chunk, sum_)
    return sum_
