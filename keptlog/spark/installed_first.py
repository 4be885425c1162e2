"""PySpark in a worker's process is the one that is installed, not its copy in a zip.

    Spark's path    pyspark.zip, py4j.zip, spark-core.jar, keptlog's folder, site-packages
    ours            keptlog's folder, site-packages, pyspark.zip, py4j.zip, spark-core.jar

Spark puts its archives first. Python keeps no bytecode for a zip, so it compiled all of PySpark again at the start of a
session, which was half a second. And each worker reads the archives' lists of files anew, 17,000 names in one of them,
since Spark has it forget them as it begins: a fifth of a second.

Where the zip belongs to an installed package, that package has the same modules, and bytecode. Where it does not, as in
a Spark that was unpacked somewhere, the path stays as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

_ZIP = Path("python", "lib", "pyspark.zip")
_ARCHIVES = (".zip", ".jar")


def installed_first(path: Sequence[str]) -> list[str]:
    """``path``, which is as ``sys.path``; archives come last that belong to a PySpark which is installed there."""
    homes = {home for entry in path if (home := _installed_home(entry, path))}
    behind = [entry for entry in path if entry.endswith(_ARCHIVES) and homes.intersection(Path(entry).parents)]
    return [entry for entry in path if entry not in behind] + behind


def forget_archives() -> None:
    """Whoever is forked from this process reads an archive's list of files only if he looks for something there."""
    for entry in sys.path:
        if entry.endswith(_ARCHIVES):
            sys.path_importer_cache.pop(entry, None)


def _installed_home(entry: str, path: Sequence[str]) -> Path | None:
    """The folder of the installed package that ``entry`` is the zip of; null if it is of none."""
    home = Path(entry).parents[2] if Path(entry).match(str(_ZIP)) else None
    if home is None or home.name != "pyspark" or not (home / "__init__.py").is_file():
        return None
    is_found = any(Path(each).resolve() == home.parent.resolve() for each in path if each)
    return home if is_found else None
