"""How Spark's Java gets its settings: by a file that only this user can read, and that is gone once Java has read it.

PySpark and ``spark-submit --conf`` put each setting on a command line, where everybody on the machine reads it with
``ps``: passwords of stores too. ``spark-submit --properties-file`` takes the same settings from a file.

Who will hand out tasks starts Java first of all (``java_ahead``), and goes on while it starts: libraries are imported
and the work is planned meanwhile. A command, or an asset's run, does all of it within one block. In Dagster's job one
op plans and another one rewrites, and may have to wait for others before: so Java is left for a while.

One thing Java takes from its environment alone: where its web page listens, if somebody switches that on. Of a local
session that is where its other ports are, on loopback, unless ``SPARK_LOCAL_IP`` says something else.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from keptlog.errors import KeptlogError, StorageUnavailable
from keptlog.spark.archive import with_archive
from keptlog.spark.java import Java, StartingJava, end, why_ended
from keptlog.spark.master import without_secrets
from keptlog.spark.nameless import with_user
from keptlog.spark.settings import session_settings

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""What PySpark gives to ``spark-submit`` beside its own; by default that it is Python who asks."""
_GATEWAY, _GATEWAY_SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
"""They lead to a Java that runs already: in a driver that spark-submit has started, and here once it is started."""
_LISTENS_AT = "SPARK_LOCAL_IP"
_BIND_ADDRESS = "spark.driver.bindAddress"
KEPT_SECONDS = 30.0
"""As long as an op takes that begins at once. Who waits for a pool for longer is not to hold the memory of a Java."""
_ESCAPED = str.maketrans({"\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t", "=": r"\=", ":": r"\:", " ": r"\ "})


@contextmanager
def settings_file(settings: Mapping[str, str]) -> Iterator[list[str]]:
    """Arguments of ``spark-submit`` that lead to a file with these settings; it is there as long as the block.

    They go over those of ``spark-defaults.conf``, as those of a command line do.
    """
    with tempfile.NamedTemporaryFile("w", prefix="keptlog-spark-", suffix=".conf", encoding="utf-8") as file:
        file.writelines(f"{name.translate(_ESCAPED)}={value.translate(_ESCAPED)}\n" for name, value in settings.items())
        file.flush()
        yield ["--properties-file", file.name, "--load-spark-defaults"]


@contextmanager
def java_for(settings: Mapping[str, str]) -> Iterator[None]:
    """Around the making of a session: the Java of this process is started, unless it runs already.

    What it writes meanwhile is shown only if a session comes; if none does, the error says why.

    Raises:
        InvalidConfig: it can't be started.
        StorageUnavailable: it has ended by itself before there was a session.
    """
    if _is_there():
        yield
        return
    java = _started(settings)
    words = java.words
    try:
        yield
    except Exception as error:
        why = why_ended(java)
        words.drop()
        if why is None:
            raise
        raise StorageUnavailable(f"no Spark session could be started: {without_secrets(why, settings)}") from error
    except BaseException:
        words.drop()
        raise
    words.pass_on()


@dataclass
class AheadOfUse:
    """Whether a Java that nobody has asked for yet is left behind."""

    kept_seconds: float = 0.0

    def keep(self, seconds: float = KEPT_SECONDS) -> None:
        """Leave it for so long, for whoever comes next in this process."""
        self.kept_seconds = seconds


@contextmanager
def java_ahead(master: str | None, extra: Mapping[str, str]) -> Iterator[AheadOfUse]:
    """Around what will need a local Spark soon: its Java is on its way, and is ended if nobody has asked for it.

    ``master`` and ``extra`` are as ``session_settings`` takes them. What is wrong with them, or with
    Java, is told to whoever asks for a Spark.
    """
    begun, use = None, AheadOfUse()
    with suppress(KeptlogError, OSError):
        settings = session_settings(master, extra)
        if settings.get("spark.master", "").startswith("local") and not _is_there() and not _ahead:
            begun = _Ahead(settings)
            _ahead.append(begun)
    try:
        yield use
    except BaseException:
        use.keep(0)
        raise
    finally:
        if begun and use.kept_seconds:
            later = threading.Timer(use.kept_seconds, _end_unused, [begun])
            later.daemon = True  # with this process Java ends by itself
            later.start()
        elif begun:
            _end_unused(begun)


def _end_unused(begun: _Ahead) -> None:
    with suppress(ValueError):  # somebody has taken it
        _ahead.remove(begun)
        begun.end()


def _take() -> _Ahead | None:
    try:
        return _ahead.pop()
    except IndexError:
        return None


class _Ahead:
    """A Java on its way, with the settings that it was given, which lie there for it to read."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = dict(settings)
        with ExitStack() as files:
            arguments = files.enter_context(settings_file(settings))
            self._starting = StartingJava(_command(arguments), _variables(settings))
            self._files = files.pop_all()

    def wait(self) -> Java:
        with self._files:
            try:
                _import_meanwhile()
            except BaseException:
                self._starting.end()
                raise
            return self._starting.wait()

    def end(self) -> None:
        with self._files:
            self._starting.end()


def _import_meanwhile() -> None:
    """Import what the first call to Java imports, and pandas with it: until it answers there is nothing else to do."""
    with suppress(ImportError):  # of another PySpark
        import pyspark.testing.utils  # noqa: F401, PLC0415


_ahead: list[_Ahead] = []
"""At most one, for whoever asks for a Spark first; who takes it out of the list has to end it."""


_own: list[Java] = []
"""The one that this process has started, if it has."""


def own_java() -> Java:
    """The Java that this process has started last.

    Raises:
        LookupError: it has started none.
    """
    return _own[0]


def forget_gone_java(wait_seconds: float) -> None:
    """Let PySpark forget a Java that is gone, and what it had there: it would ask that one for ever, and start none."""
    from pyspark import SparkContext  # noqa: PLC0415  # Java may be on its way before PySpark is imported
    from pyspark.sql import SparkSession  # noqa: PLC0415  # as above

    process = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001
    if process is None:
        return
    try:
        process.wait(wait_seconds)
    except subprocess.TimeoutExpired:
        return
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None  # noqa: SLF001
    SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001


def _is_there() -> bool:
    context = sys.modules.get("pyspark.core.context")
    return _GATEWAY in os.environ or bool(context and context.SparkContext._gateway)  # noqa: SLF001  # nothing else tells


def _command(arguments: list[str]) -> list[str]:
    own = shlex.split(os.environ.get(_ARGUMENTS) or "pyspark-shell")
    return [str(spark_home() / "bin" / "spark-submit"), *arguments, *own]


def spark_home() -> Path:
    """Where Spark is. PySpark says it too, once it is imported, and that takes a third of a second."""
    package = find_spec("pyspark")
    beside = Path(package.origin).parent if package and package.origin else None
    if "SPARK_HOME" not in os.environ and beside and (beside / "bin" / "spark-submit").is_file():
        return beside
    from pyspark.find_spark_home import _find_spark_home  # noqa: PLC0415  # see above

    return Path(_find_spark_home())


def _variables(settings: Mapping[str, str]) -> dict[str, str]:
    is_local = settings.get("spark.master", "").startswith("local")
    variables = with_user(os.environ)
    if is_local and _BIND_ADDRESS in settings:
        variables[_LISTENS_AT] = variables.get(_LISTENS_AT) or settings[_BIND_ADDRESS]
    return with_archive(variables, settings, spark_home()) if is_local else variables


def _started(settings: Mapping[str, str]) -> Java:
    """A new Java, and the one from which PySpark takes sessions from now on."""
    from pyspark import SparkContext  # noqa: PLC0415  # Java may be on its way before PySpark is imported

    ahead = _take()
    if ahead and ahead.settings != settings:
        ahead.end()
        ahead = None
    java = (ahead or _Ahead(settings)).wait()
    try:
        with with_variables({_GATEWAY: str(java.port), _GATEWAY_SECRET: java.secret}):
            # Whatever it is asked, it is remembered for the answer.
            SparkContext.getSystemProperty("java.version")
        # Where PySpark has it, for who waits until it is gone.
        SparkContext._gateway.proc = java.process  # type: ignore[union-attr]  # noqa: SLF001
        _own[:] = [java]
    except BaseException:
        end(java.process)
        raise
    return java


@contextmanager
def with_variables(given: Mapping[str, str]) -> Iterator[None]:
    """These variables, as long as the block."""
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
