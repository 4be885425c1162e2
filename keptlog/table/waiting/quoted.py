"""Takes the secrets of a request out of what a server says of it: some quote what they don't take.

AWS quotes all that was signed where it does not take the signature, the session's token among it.

A password is sent in base64, and may be quoted in readable form. An answer is JSON, where quotes and letters beyond
ASCII are written otherwise, and what it quotes may be JSON itself, or the form that was sent.

What a refusal says becomes an error, which is told, logged and stored.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, quote_plus

HIDDEN = b"[hidden]"
_IS_SECRET = re.compile(r"auth|token|secret|credential|passw|cookie|signature|key$", re.IGNORECASE)
"""Names of headers whose values nobody else may know: settings may add any, as ``header.X-Api-Key``."""


def without(secrets: Iterable[str], content: bytes) -> bytes:
    """What a server says, without these."""
    written = {form for secret in secrets if secret for form in _written(secret)}
    for secret in sorted(written, key=len, reverse=True):
        content = content.replace(secret.encode(), HIDDEN)
    return content


def secrets_in(headers: Mapping[str, object]) -> Iterator[str]:
    """The secrets that the headers of a request have; some may be empty."""
    for name, value in headers.items():
        if not _IS_SECRET.search(name):
            continue
        text = _text(value)
        yield text
        if name.lower().endswith("authorization"):  # Original-Authorization too, where a signature has taken its place
            scheme, _, authorization = text.partition(" ")
            yield authorization
            yield _password_in(authorization) if scheme.lower() == "basic" else ""


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value or "")  # boto3 sends bytes


def _written(secret: str) -> set[str]:
    """The ways in which an answer may write a secret."""
    forms = {secret, quote(secret, safe=""), quote_plus(secret)}
    for _ in range(2):  # JSON, and JSON in JSON
        forms |= {json.dumps(form, ensure_ascii=is_ascii)[1:-1] for form in forms for is_ascii in (True, False)}
    return forms


def _password_in(authorization: str) -> str:
    try:
        return base64.b64decode(authorization).decode().partition(":")[2]
    except ValueError:
        return ""
