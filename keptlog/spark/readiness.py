"""Before the first task of a session: keptlog's code goes to the workers, and what they have there is compared.

    driver                                         each worker that a small job reaches
    archive of keptlog  ──── addArtifacts ────>    imports it before any keptlog that is installed there
    Python, keptlog, pyarrow  <──── one job ────   Python, keptlog, pyarrow, and whether the modules can be imported

A worker that lacks something would fail each task four times over, with a stack trace, and every log would look as if
it were at fault. Here it is one line, before anything was tried, and no log's fault.

Local sessions need none of it: their workers are this Python. Nor does a session that was found ready before, which a
Connect session remembers for all who share it. The job is an ordinary Python function of Spark's, which needs no Arrow;
what it does is sent by value, because nothing of keptlog may be there.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from keptlog.errors import InvalidConfig
from keptlog.foreign_json import json_value
from keptlog.spark.driver import Spark, local_context, session_on
from keptlog.spark.failures import told_in_one_line
from keptlog.spark.packed import archive_name, fingerprint, write_archive
from keptlog.spark.waiting import collected
from keptlog.spark.worker_imports import DAEMON, OWN_DAEMON

MODULES = ("pyarrow", "numpy")
"""What every task imports, beside Python's own modules and keptlog's."""
_READY = "keptlog.workers.ready"
_DOING = "looking at Spark's workers"
_ROWS = 1024
"""Spark cuts them into as many tasks as it runs at once."""


def make_ready(spark: Spark, modules: Iterable[str] = ()) -> None:
    """Send keptlog's code to the workers of a session and compare them with this process, if nobody has done so yet.

    ``modules`` are needed in tasks besides those that always are.

    Raises:
        InvalidConfig: the workers lack something, or have another version of it; says what, where and what to do.
        StorageUnavailable: Spark fails.
    """
    if local_context(spark):
        return
    needed = sorted({*MODULES, *modules})
    wanted = " ".join([fingerprint(), *needed])
    with told_in_one_line(_DOING):
        session = session_on(spark)
        if session.conf.get(_READY, "") == wanted:
            return
        # The workers of ``keptlog spark-server`` have imported the server's keptlog already.
        if session.conf.get(DAEMON, "") != OWN_DAEMON:
            session.addArtifacts(_archive(), pyfile=True)
        _require_fit(_seen_by_workers(session, needed), needed)
        session.conf.set(_READY, wanted)


def _require_fit(seen: Iterable[Mapping[str, Any]], needed: Sequence[str]) -> None:
    for worker in seen:
        why = why_unfit(worker, needed)
        if why:
            raise InvalidConfig(f"{why}; nothing was changed, and no log is held to be at fault")


def why_unfit(worker: Mapping[str, Any], needed: Sequence[str]) -> str | None:
    """What is wrong with a worker, by what it has told of itself; null if it can do our tasks."""
    where = f"Python {worker['python']}, {worker['executable']} on {worker['host']}"
    here = ".".join(map(str, sys.version_info[:2]))
    if worker["python"].split(".")[:2] != here.split("."):
        return f"Spark's workers run another Python ({where}) than this process ({here}): {_CHOOSE_PYTHON}"
    missing = [name for name in needed if worker["modules"][name].get("error")]
    if missing:
        why = "; ".join(worker["modules"][name]["error"] for name in missing)
        return f"Spark's workers can't import {', '.join(missing)} ({where}): {why}; {what_to_install(missing)}"
    there, ours = str(worker["modules"]["pyarrow"]["version"]), version("pyarrow")
    if there.split(".", maxsplit=1)[0] != ours.split(".")[0]:
        return (
            f"Spark's workers have pyarrow {there} ({where}), and this process has {ours}: "
            f"{what_to_install(['pyarrow'])}"
        )
    if worker["keptlog"] != fingerprint():
        told = worker["keptlog_version"] or "none that can be imported"
        return (
            f"Spark's workers have another keptlog ({told}, {where}) than this process: start "
            "keptlog spark-server again, or take another session_id in KEPTLOG_SPARK_MASTER"
        )
    return None


_CHOOSE_PYTHON = (
    "let PYSPARK_PYTHON name the workers' Python of the same version (for Connect, where the server starts)"
)


def what_to_install(modules: Iterable[str]) -> str:
    """What to do about modules that workers lack, or have in another version."""
    packages = " ".join(f"'{requirement_of(name)}'" for name in modules)
    return f"pip install {packages} there, or let PYSPARK_PYTHON name a Python that has it (for Connect, the server's)"


def requirement_of(module: str) -> str:
    """What pip is to install for a module: the release that this process has, but for its last numbers."""
    package = _PACKAGES.get(module, module)
    try:
        first, *rest = version(package).split(".")
    except Exception:  # noqa: BLE001  # this process may not have it either
        return package
    release = [first] if module == "pyarrow" else [first, *rest[:1]]
    return f"{package}=={'.'.join(release)}.*"


_PACKAGES = {"confluent_kafka": "confluent-kafka", "google_crc32c": "google-crc32c"}


def _seen_by_workers(session: SparkSession, needed: Sequence[str]) -> list[dict[str, Any]]:
    """What each worker that got a task has told, each once."""
    told: list[str] = []

    def look(_: int) -> str | None:
        # By value, with no name from this module: where it runs there may be no keptlog, and once a task.
        import importlib  # noqa: PLC0415
        import json  # noqa: PLC0415
        import platform  # noqa: PLC0415
        import socket  # noqa: PLC0415
        import sys  # noqa: PLC0415

        if told:
            return None
        modules: dict[str, dict[str, str]] = {}
        for name in needed:
            try:
                modules[name] = {"version": str(getattr(importlib.import_module(name), "__version__", ""))}
            except Exception as error:  # noqa: BLE001  # whatever a module dies of
                modules[name] = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        code = here = None
        try:
            code = importlib.import_module("keptlog.spark.packed").fingerprint()
        except Exception as error:  # noqa: BLE001  # none, or one that is older than this question
            here = f"{type(error).__name__}: {error}".splitlines()[0]
        keptlog = sys.modules.get("keptlog")
        told.append(
            json.dumps(
                {
                    "python": platform.python_version(),
                    "executable": sys.executable,
                    "host": socket.gethostname(),
                    "modules": modules,
                    "keptlog": code,
                    "keptlog_version": getattr(keptlog, "__version__", None) or here,
                },
                sort_keys=True,
            )
        )
        return told[0]

    from pyspark.sql.functions import udf  # noqa: PLC0415  # local Sparks are not asked

    asked = udf(look, "string", useArrow=False)
    rows = collected(session, session.range(0, _ROWS).select(asked("id").alias("told")), _DOING)
    return [json_value(each) for each in sorted({row.told for row in rows if row.told})]


@lru_cache(maxsize=1)
def _archive() -> str:
    """The path of an archive of this process's code, which lies there as long as the process: Spark fetches it late."""
    path = Path(_folder().name, archive_name())
    with path.open("wb") as sink:
        write_archive(sink)
    return str(path)


@lru_cache(maxsize=1)
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="keptlog-code-", ignore_cleanup_errors=True)
