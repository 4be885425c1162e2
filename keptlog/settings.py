"""Where a home is, and what its files of settings say. Nothing is opened here, and little is imported.

Broker settings are Kafka's (``log.cleaner.min.cleanable.ratio`` …), in Kafka's own form: a ``server.properties`` in the
home, or environment variables, which win: ``KEPTLOG_BROKER_LOG_CLEANER_MIN_CLEANABLE_RATIO=0.3``.

Spark's settings are Spark's, in the form of its ``spark-defaults.conf``: a ``spark.properties`` in the home. They go
over keptlog's own one by one. ``KEPTLOG_SPARK_MASTER`` wins over the master that stands there. It is an address, or
``file:`` and the file in which ``keptlog spark-server --address-file`` keeps its own: a process that lives for months
finds a server there that was started again with another port or token.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.log.broker import BrokerConfig
from keptlog.log.given.properties import parse_properties
from keptlog.log.setting import BROKER_VARIABLES
from keptlog.log.words.no_text import GZIP, why_no_text
from keptlog.regular_file import read_file
from keptlog.resident import place
from keptlog.whole_file import warn_of_readers

HOME_VARIABLE, DEFAULT_HOME = "KEPTLOG_HOME", ".keptlog"
BROKER_FILE = "server.properties"
SPARK_FILE = "spark.properties"
SPARK_MASTER = place.SPARK_MASTER
SECRET_OF_SPARK = re.compile(r"secret|password|token|access[.]?key", re.IGNORECASE)
"""As Spark itself tells which settings it does not show, by their names or values."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""How an address such as ``s3://bucket/home`` begins, once it was taken for a path."""
_SPARK_SETTING = re.compile(r"(spark\.[^\s=:]+)(?:\s*[=:]\s*|\s+)(\S.*)")


def home_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the home is: ``KEPTLOG_HOME``, or ``.keptlog`` in the working directory.

    Raises:
        InvalidConfig: it is no path on this machine.
    """
    return home_folder(Path(environment.get(HOME_VARIABLE) or DEFAULT_HOME))


def home_folder(path: Path) -> Path:
    """The whole path of a home, without ``..``, because the paths of all its files begin with it.

    Other programs take ``a/../b`` for ``b`` when they write a path, and then one file has two names. Symbolic links
    stay as they are given: who keeps a home behind a link may turn it elsewhere.

    Raises:
        InvalidConfig: it is no path on this machine.
    """
    if path.parts and _ADDRESS.fullmatch(path.parts[0]):
        scheme, rest = path.parts[0], "/".join(path.parts[1:])
        address, todo = f"{scheme}//{rest}", f"give the path alone: /{rest}"
        if scheme == "file:":
            address = f"{scheme}///{rest}"
        else:
            todo = "give a folder, and configure a catalog for topics in object storage (docs/lake.md)"
        raise InvalidConfig(f"home {address} is an address, and a home is a folder of this machine: {todo}")
    try:
        expanded = path.expanduser()
    except RuntimeError:
        raise InvalidConfig(
            f"home {path} begins with the home folder of a user whom this machine does not know: give the whole path"
        ) from None
    folder = Path("/")
    for part in expanded.absolute().parts[1:]:
        folder = folder.resolve().parent if part == ".." else folder / part
    _require_utf_8(folder)
    return folder


def require_entry(home: Path) -> None:
    """Refuse a home that this user may not enter: whatever is asked of it would seem not to be there, or to fail.

    Raises:
        StorageUnavailable: naming it, for good.
    """
    try:
        os.stat(home / BROKER_FILE)  # noqa: PTH116  # a Path takes some errors for no
    except PermissionError as error:
        raise StorageUnavailable(
            f"home {home} can't be entered by this user ({error.strerror}): see to its permissions, or set "
            "KEPTLOG_HOME to the home that you mean"
        ).for_good() from error
    except OSError:
        return


def own_file(home: Path, name: str) -> Path | None:
    """A file of a home; null if there is none.

    Raises:
        StorageUnavailable: this user may not enter the home, so nobody can tell.
    """
    require_entry(home)
    path = home / name
    return path if path.exists() else None


def _require_utf_8(folder: Path) -> None:
    """What stands in a topic's metadata is UTF-8, and so are the paths in it."""
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        shown = ascii(str(folder))
        raise InvalidConfig(
            f"home {shown} is no UTF-8 to this process: set PYTHONUTF8=1, or LC_ALL to a locale of UTF-8 such as "
            "C.UTF-8; or rename the folder"
        ) from None


def broker_settings(home: Path, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Broker settings from a home's ``server.properties`` and the environment.

    Raises:
        InvalidConfig: naming the file's line or the variable.
        StorageUnavailable: this user may not enter the home.
    """
    properties = own_file(home, BROKER_FILE)
    settings = read_properties(properties) if properties else {}
    for name, value in environment.items():
        if name.startswith(BROKER_VARIABLES):
            settings[name.removeprefix(BROKER_VARIABLES).lower().replace("_", ".")] = value
    try:
        BrokerConfig.of(settings)
    except InvalidConfig as error:
        raise InvalidConfig(f"broker settings ({home / BROKER_FILE} and {BROKER_VARIABLES}*): {error}") from None
    return settings


def spark_settings(home: Path) -> dict[str, str]:
    """Spark's settings from a home's ``spark.properties``; none where there is no such file.

    A file that holds a secret, and that others can read, is a warning.

    Raises:
        InvalidConfig: naming the file's line. It is not shown, for it may be a password.
        StorageUnavailable: this user may not enter the home.
    """
    path = own_file(home, SPARK_FILE)
    if path is None:
        return {}
    settings: dict[str, str] = {}
    for number, line in enumerate(_text_of(path).splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", "!")):
            continue
        found = _SPARK_SETTING.fullmatch(stripped)
        if not found:
            raise InvalidConfig(f"{path} line {number} is not spark.name=value")
        settings[found.group(1)] = found.group(2)
    if any(SECRET_OF_SPARK.search(f"{name} {value}") for name, value in settings.items()):
        warn_of_readers(path)
    return settings


def spark_address_file(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The file that ``KEPTLOG_SPARK_MASTER`` names; null if it is an address, or not set."""
    file = place.address_file(environment)
    return None if file is None else Path(file)


def spark_master(environment: Mapping[str, str] = os.environ) -> str | None:
    """Where Spark runs, as ``KEPTLOG_SPARK_MASTER`` says; null if it says nothing. A file is read at each call.

    Raises:
        StorageUnavailable: there is no such file; whoever writes it may not have been started yet.
        InvalidConfig: it can't be read, or is empty.
    """
    path = spark_address_file(environment)
    if path is None:
        return environment.get(SPARK_MASTER) or None
    if path.is_dir():
        raise InvalidConfig(f"{SPARK_MASTER}={environment[SPARK_MASTER]} names no file: write file: and its path")
    if not path.exists():
        raise StorageUnavailable(
            f"no Spark Connect server has left its address in {path}, which {SPARK_MASTER} names: "
            f"start one (keptlog spark-server --address-file {shlex.quote(str(path))})"
        )
    warn_of_readers(path)
    address = _text_of(path).strip()
    if not address:
        raise InvalidConfig(f"{path}, which {SPARK_MASTER} names, is empty: it is to hold Spark's address")
    return address


def read_properties(path: Path) -> dict[str, str]:
    """The settings in a properties file.

    Raises:
        InvalidConfig: it can't be read, or has a line that is no setting.
    """
    return parse_properties(_text_of(path), str(path))


def _text_of(path: Path) -> str:
    """What a file says, without the byte order mark that some editors write."""
    try:
        content = read_file(path)
        if content.startswith(GZIP):
            raise InvalidConfig(f"{path} can't be read: it is compressed with gzip: unpack it (gzip -dc FILE)")
        if why := why_no_text(content):
            raise InvalidConfig(f"{path} can't be read: {why}")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise InvalidConfig(f"{path} can't be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidConfig(f"{path} line {line} is no text in UTF-8: write the file as UTF-8") from None
