"""Whether a Spark could be had, for whoever has nothing to do for it: ``keptlog doctor``.

Where each process starts its own Spark, doctor looks for a Java and starts none. It also looks for the cluster that
such a process would join. A Connect server is asked: it answers, is of this version, and its workers have what keptlog
needs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping

from keptlog.errors import InvalidConfig
from keptlog.spark.connect import place_of
from keptlog.spark.master import require_way_there
from keptlog.spark.settings import session_settings

_LEAST_JAVA = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_PATIENCE_SECONDS = 20


def require_spark(master: str | None, extra: Mapping[str, str]) -> None:
    """See that Spark can be had; ``master`` and ``extra`` as ``session_settings`` takes them.

    Raises:
        InvalidConfig: Java is missing or too old, a setting is refused, YARN's configuration is not there, or a server
            is of another version.
        StorageUnavailable: nobody answers.
    """
    settings = session_settings(master, extra)
    remote = settings.get("spark.remote")
    if remote is None:
        require_java(os.environ)
        require_way_there(settings["spark.master"], os.environ)
        return
    # Who looks for a Java needs no PySpark.
    import pyspark  # noqa: PLC0415

    from keptlog.spark.readiness import make_ready  # noqa: PLC0415
    from keptlog.spark.session import start_session  # noqa: PLC0415

    session = start_session(master, extra)
    there, here = session.version, pyspark.__version__
    if there.split(".")[:2] != here.split(".")[:2]:
        raise InvalidConfig(
            f"the Spark Connect server at {place_of(remote)} is of version {there}, and PySpark here of {here}: "
            f"pip install 'pyspark=={'.'.join(there.split('.')[:2])}.*' here, or start a server of this version"
        )
    make_ready(session)


def require_java(environment: Mapping[str, str]) -> None:
    """See that there is a Java that Spark starts with.

    Raises:
        InvalidConfig: there is none, or it is too old.
    """
    home = environment.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else environment.get("PATH"))
    where = f"JAVA_HOME={home}" if home else "PATH"
    install = "install Java 17 or newer, for example with apt-get install openjdk-17-jre-headless"
    if java is None:
        raise InvalidConfig(f"there is no Java where {where} leads to, and Spark needs one: {install}")
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise InvalidConfig(f"{java} does not run ({type(error).__name__}): {install}") from None
    found = _VERSION.search(told.stderr + told.stdout)
    if found and int(found.group(1)) < _LEAST_JAVA:
        raise InvalidConfig(f"{java} is Java {found.group(1)}, and Spark needs {_LEAST_JAVA}: {install}")
