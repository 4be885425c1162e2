"""The address at which Spark runs, looked at before Java is started: what is wrong with it is then told in a second.

    local[*]  local[4]  local[4,2]     in this process               nothing to be asked
    spark://HOST:PORT,HOST:PORT        a standalone cluster          does one of its masters listen?
    yarn                               as Hadoop's files say         does a variable name their folder?
    k8s://HOST:PORT                    Kubernetes                    Spark asks: perhaps there is a proxy between
    sc://HOST:PORT/;token=…            a Connect server              does it listen?

Spark itself takes a minute and 130 lines for the same. What people are told shows no token.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.settings import SECRET_OF_SPARK
from keptlog.spark.connect import require_server

_CONNECT_SECONDS = 5
_STANDALONE = "spark://"
_LOCAL = re.compile(r"local(\[\s*([1-9]\d*|\*)\s*(,\s*\d+\s*)?\])?|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]")
_HADOOP_VARIABLES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_TOKEN = re.compile(r"(?<=token=)[^;\s'\"]+")
_FORMS = "local[*], local[4], spark://HOST:7077, yarn, k8s://HOST:PORT or sc://HOST:15002"
_FILE_FORM = "file:PATH with the address file of keptlog spark-server"
_SOURCES = "KEPTLOG_SPARK_MASTER, or spark.master in spark.properties or in Dagster's spark_config"


def require_form(master: str) -> None:
    """See that an address is one of Spark's.

    Raises:
        InvalidConfig: it is none; says which there are.
    """
    if why := _why_malformed(master):
        shown = without_secrets(master, {})
        raise InvalidConfig(
            f"{shown!r} is no address of Spark's, {why}: let {_SOURCES}, be {_FORMS}; or let KEPTLOG_SPARK_MASTER be "
            f"{_FILE_FORM}"
        )


def require_answer(master: str) -> None:
    """See that an address is one of Spark's, and that somebody listens there, for whoever starts no Java himself.

    What only the process needs that starts Java, as Hadoop's variables, is not looked at.

    Raises:
        InvalidConfig: it is no address of Spark's.
        StorageUnavailable: nobody listens.
    """
    require_form(master)
    require_server(master)
    if master.startswith(_STANDALONE):
        _require_listener(master)


def require_way_there(master: str, environment: Mapping[str, str]) -> None:
    """See that Java would find what is at an address that ``require_form`` has passed.

    Raises:
        InvalidConfig: YARN's configuration is not there.
        StorageUnavailable: no master of a standalone cluster listens.
    """
    if master == "yarn":
        _require_hadoop(environment)
    if master.startswith(_STANDALONE):
        _require_listener(master)


def without_secrets(text: str, settings: Mapping[str, str]) -> str:
    """A text in which no token and no value of a secret setting stands."""
    for name, value in settings.items():
        if SECRET_OF_SPARK.search(name) and value:
            text = text.replace(value, "…")
    return _TOKEN.sub("…", text)


def _why_malformed(master: str) -> str | None:
    scheme, separator, rest = master.partition("://")
    if master == "yarn" or _LOCAL.fullmatch(master):
        return None
    if master.startswith("local"):
        return "it has no number of threads from 1 on"
    if not separator or scheme not in {"spark", "k8s", "sc"}:
        return "it begins like none of them"
    if scheme == "spark":
        return None if all(map(_place, rest.split(","))) else "host or port is missing"
    if scheme == "sc":
        return None if _host(master) else "the host is missing"
    return None if rest else "the host is missing"


def _place(text: str) -> tuple[str, int] | None:
    """Host and port; null if one is missing, or is none."""
    address = f"//{text}"
    try:
        host, port = urlsplit(address).hostname, urlsplit(address).port
    except ValueError:
        return None
    return (host, port) if host and port else None


def _host(address: str) -> str | None:
    try:
        return urlsplit(address).hostname if urlsplit(address).port != 0 else None
    except ValueError:
        return None


def _require_hadoop(environment: Mapping[str, str]) -> None:
    named = {name: environment[name] for name in _HADOOP_VARIABLES if environment.get(name)}
    if not named:
        both = " or ".join(_HADOOP_VARIABLES)
        raise InvalidConfig(
            "Spark's master is yarn, and no variable says where YARN is: "
            f"let {both} name the folder with Hadoop's settings"
        )
    for name, folder in named.items():
        if not Path(folder).is_dir():
            raise InvalidConfig(
                f"{name}={folder} is no folder, and with the master yarn it is to be the folder with Hadoop's settings"
            )


def _require_listener(master: str) -> None:
    refused = []
    for text in master.removeprefix(_STANDALONE).split(","):
        try:
            socket.create_connection(_place(text) or ("", 0), timeout=_CONNECT_SECONDS).close()
        except OSError as error:
            refused.append(f"{text}: {error.strerror or error}")
        else:
            return
    raise StorageUnavailable(
        f"no Spark master answers at {master} ({'; '.join(refused)}): start it, or let {_SOURCES}, name another"
    )
