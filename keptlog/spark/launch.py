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

from pyspark import SparkContext

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""What PySpark gives to ``spark-submit`` beside its own; by default that it is Python who asks."""
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


def start_java(settings: Mapping[str, str]) -> None:
    """Start the Java of this process, unless it runs already.

    Raises:
        PySparkException: it can't be started.
    """
    is_local = settings.get("spark.master", "").startswith("local")
    with settings_file(settings) as arguments:
        given = {_ARGUMENTS: f"{shlex.join(arguments)} {os.environ.get(_ARGUMENTS) or 'pyspark-shell'}"}
        if is_local and _BIND_ADDRESS in settings:
            given[_LISTENS_AT] = os.environ.get(_LISTENS_AT) or settings[_BIND_ADDRESS]
        with _environment(given):
            # Whatever it is asked, it is started for the answer; a session takes the one that runs.
            SparkContext.getSystemProperty("java.version")


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
