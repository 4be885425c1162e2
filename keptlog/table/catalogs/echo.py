"""Takes out of a server's refusal the secrets that it was sent: some gateways quote what they don't take.

AWS quotes all that was signed where it does not take the signature, the session's token among it.

A password is sent in base64, and may be quoted in readable form. An answer is JSON, where quotes and letters beyond
ASCII are written otherwise, and what it quotes may be JSON itself, or the form that was sent.

What a refusal says becomes an error, which is told, logged and stored.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from urllib.parse import parse_qs, quote, quote_plus

from requests import PreparedRequest, Response

_SECRET_FIELDS = ("client_secret", "password", "assertion", "subject_token", "refresh_token")
_AUTHORIZATIONS = ("Authorization", "Original-Authorization")
"""Where a request is signed for AWS, the second has what the first had before."""
_SESSION_TOKEN = "X-Amz-Security-Token"  # noqa: S105  # a header's name
HIDDEN = b"[hidden]"


def without_what_was_sent(answer: Response, *_: object, **__: object) -> None:
    """A hook for the answers of a ``requests`` session; those that are no refusal stay as they are."""
    if answer.ok:
        return
    content = answer.content
    written = {form for secret in _secrets_of(answer.request) for form in _written(secret)}
    for secret in sorted(written, key=len, reverse=True):
        content = content.replace(secret.encode(), HIDDEN)
    answer._content = content  # noqa: SLF001  # requests has no other way


def _secrets_of(request: PreparedRequest) -> Iterator[str]:
    found = [str(request.headers.get(_SESSION_TOKEN) or "")]
    for name in _AUTHORIZATIONS:
        scheme, _, authorization = str(request.headers.get(name) or "").partition(" ")
        found += [authorization, _password_in(authorization) if scheme.lower() == "basic" else ""]
    form = parse_qs(request.body) if isinstance(request.body, str) else {}
    found += [value for name in _SECRET_FIELDS for value in form.get(name, ())]
    yield from filter(None, found)


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
