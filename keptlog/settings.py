"""Where a home is, and what its files of settings say. Nothing is opened here, and little is imported.

Broker settings are Kafka's (``log.cleaner.min.cleanable.ratio`` …), in Kafka's own form: a ``server.properties`` in the
home, or environment variables, which win: ``KEPTLOG_BROKER_LOG_CLEANER_MIN_CLEANABLE_RATIO=0.3``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from keptlog.errors import InvalidConfig
from keptlog.log.broker import BrokerConfig
from keptlog.log.properties import parse_properties

DEFAULT_HOME = ".keptlog"
BROKER_FILE = "server.properties"
_ENVIRONMENT_PREFIX = "KEPTLOG_BROKER_"


def home_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the home is: ``KEPTLOG_HOME``, or ``.keptlog`` in the working directory."""
    return home_folder(Path(environment.get("KEPTLOG_HOME") or DEFAULT_HOME))


def home_folder(path: Path) -> Path:
    """The whole path of a home, without ``..``, because the paths of all its files begin with it.

    Other programs take ``a/../b`` for ``b`` when they write a path, and then one file has two names. Symbolic links
    stay as they are given: who keeps a home behind a link may turn it elsewhere.
    """
    folder = Path("/")
    for part in path.expanduser().absolute().parts[1:]:
        folder = folder.resolve().parent if part == ".." else folder / part
    return folder


def broker_settings(properties: Path, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Broker settings from a ``server.properties`` and the environment.

    Raises:
        InvalidConfig: naming the file's line or the variable.
    """
    settings = read_properties(properties) if properties.is_file() else {}
    for name, value in environment.items():
        if name.startswith(_ENVIRONMENT_PREFIX):
            settings[name.removeprefix(_ENVIRONMENT_PREFIX).lower().replace("_", ".")] = value
    try:
        BrokerConfig.of(settings)
    except InvalidConfig as error:
        raise InvalidConfig(f"broker settings ({properties} and {_ENVIRONMENT_PREFIX}*): {error}") from None
    return settings


def read_properties(path: Path) -> dict[str, str]:
    """The settings in a properties file.

    Raises:
        InvalidConfig: it can't be read, or has a line that is no setting.
    """
    try:
        return parse_properties(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{path} can't be read: {getattr(error, 'strerror', None) or 'it is not text'}") from None
