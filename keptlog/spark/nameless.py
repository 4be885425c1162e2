"""Java as a user whom this machine has no name for, as in a container that runs as a mere number.

Java says ``?`` then for his home folder, which Spark refuses as no whole path before it does anything, and Hadoop finds
nobody to work as. So both are told. What Hadoop's own file systems need besides, keptlog does without: Spark opens no
file for it.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path

from keptlog.spark.archive import OPTIONS, in_quotes

_WORKS_AS = "SPARK_USER"
_NOWHERE = "/nonexistent"
"""What Debian calls the home of who has none. Nobody else can have put anything there, as in a folder for all."""


def with_user(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables with which Spark's Java is started; they say who the user is where the machine can't."""
    variables = dict(environment)
    user_id = os.getuid()  # and not the effective one: Java asks for this
    try:
        pwd.getpwuid(user_id)
    except KeyError:
        home = Path(variables.get("HOME") or _NOWHERE)
        told = f"-Duser.home={in_quotes(home if home.is_absolute() else Path(_NOWHERE))}"
        variables[OPTIONS] = f"{told} {variables.get(OPTIONS, '')}".rstrip()
        variables[_WORKS_AS] = variables.get(_WORKS_AS) or str(user_id)
    return variables
