"""How Spark's Java gets its settings: by a file that only this user can read, and that is gone once Java has read it.

PySpark and ``spark-submit --conf`` put each setting on a command line, where everybody on the machine reads it with
``ps``: passwords of stores too. ``spark-submit --properties-file`` takes the same settings from a file.

One thing Java takes from its environment alone: where its web page listens, if somebody switches that on. Of a local
session that is where its other ports are, on loopback, unless ``SPARK_LOCAL_IP`` says something else.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home

from keptlog.spark.java import Java, end, launched

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""What PySpark gives to ``spark-submit`` beside its own; by default that it is Python who asks."""
_GATEWAY, _GATEWAY_SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
"""They lead to a Java that runs already: in a driver that spark-submit has started, and here once it is started."""
_LISTENS_AT = "SPARK_LOCAL_IP"
_BIND_ADDRESS = "spark.driver.bindAddress"
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
    """
    if _GATEWAY in os.environ or SparkContext._gateway:  # noqa: SLF001  # nothing else tells
        yield
        return
    words = _started(settings).words
    try:
        yield
    except BaseException:
        words.drop()
        raise
    words.pass_on()


def _started(settings: Mapping[str, str]) -> Java:
    """A new Java, and the one from which PySpark takes sessions from now on."""
    is_local = settings.get("spark.master", "").startswith("local")
    variables = dict(os.environ)
    if is_local and _BIND_ADDRESS in settings:
        variables[_LISTENS_AT] = variables.get(_LISTENS_AT) or settings[_BIND_ADDRESS]
    with settings_file(settings) as arguments:
        own = shlex.split(os.environ.get(_ARGUMENTS) or "pyspark-shell")
        java = launched([str(Path(_find_spark_home(), "bin", "spark-submit")), *arguments, *own], variables)
    try:
        with _environment({_GATEWAY: str(java.port), _GATEWAY_SECRET: java.secret}):
            # Whatever it is asked, it is remembered for the answer.
            SparkContext.getSystemProperty("java.version")
        # Where PySpark has it, for who waits until it is gone.
        SparkContext._gateway.proc = java.process  # type: ignore[union-attr]  # noqa: SLF001
    except BaseException:
        end(java.process)
        raise
    return java


@contextmanager
def _environment(given: Mapping[str, str]) -> Iterator[None]:
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
