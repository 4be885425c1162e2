"""What AWS's configuration file says of a profile that boto3 takes by itself, and Arrow does not.

    [profile lake]                        [services here]
    services = here                       s3 =
    endpoint_url = http://…                 endpoint_url = http://…       goes before that of all services
    ca_bundle = /etc/ssl/own.pem

Where only one of both clients took it, metadata would be here and segments there, or nowhere. Most files name neither,
so they are looked through for that word before botocore is imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from botocore.session import Session

_ENDPOINT, _AUTHORITY = "endpoint_url", "ca_bundle"
_FILES = {"AWS_CONFIG_FILE": "~/.aws/config", "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials"}
"""A profile is what both say of it; and where they are, unless these variables say so."""


def endpoint_of_profile() -> str | None:
    """Null where none is named or is to be used, and where the file is none: boto3 tells what is wrong with it."""
    return _said(_ENDPOINT, _endpoint_in)


def authority_of_profile() -> str | None:
    """The file of whoever signs the certificates of stores; null as above."""
    return _said(_AUTHORITY, lambda session: session.get_scoped_config().get(_AUTHORITY))


def _endpoint_in(session: Session) -> object:
    if session.get_config_variable("ignore_configured_endpoint_urls"):
        return None
    profile = session.get_scoped_config()
    of_s3 = session.full_config.get("services", {}).get(profile.get("services"), {}).get("s3", {})
    return of_s3.get(_ENDPOINT) or profile.get(_ENDPOINT)


def _said(word: str, ask: Callable[[Session], object]) -> str | None:
    if not any(_has(Path(os.environ.get(name, usual)), word) for name, usual in _FILES.items()):
        return None
    try:
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415  # boto3 is an extra
        from botocore.session import Session  # noqa: PLC0415  # as above
    except ModuleNotFoundError:
        return None
    try:
        named = ask(Session())
    except (BotoCoreError, AttributeError):
        return None
    return str(named) if named else None


def _has(path: Path, word: str) -> bool:
    try:
        return word in path.expanduser().read_text()
    except (OSError, ValueError, RuntimeError):
        return False
