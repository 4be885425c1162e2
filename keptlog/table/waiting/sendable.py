"""Values that a header of HTTP can have: the client for HTTP quotes what it can't send, and it may be a secret."""

from __future__ import annotations

import re
from collections.abc import Mapping

from keptlog.errors import InvalidConfig

_SENDABLE = re.compile(r"(?!\s)[^\r\n\u0100-\U0010ffff]*")


def require_sendable(headers: Mapping[str, object], whose: str) -> None:
    """Refuse a value that no header can have; ``whose`` settings it is made of is what the error begins with.

    Raises:
        InvalidConfig: naming the header.
    """
    for name, value in headers.items():
        text = value.decode("latin-1") if isinstance(value, bytes) else value
        if not (isinstance(text, str) and _SENDABLE.fullmatch(text)):
            raise InvalidConfig(
                f"{whose}: what is sent as {name} is no text, begins with a space, or has a line end or a letter "
                "that no header can have: see to the end of the token, or of the setting, that it is made of"
            )
