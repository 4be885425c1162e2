"""Takes the secrets of a request out of what a server says of it: some quote what they don't take.

AWS quotes all that was signed where it does not take the signature, the session's token among it.

A password is sent in base64, and may be quoted in readable form. An answer is JSON, and what it quotes may be JSON
itself, or the form that was sent. Who writes JSON may escape what he likes: PHP does a slash, Gson a =, .NET a +, each
of which a token has.

What a refusal says becomes an error, which is told, logged and stored.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

HIDDEN = b"[hidden]"
_BEGIN = 12
"""Letters, by which it is seen whether a secret is quoted at all."""
_IS_SECRET = re.compile(r"auth|token|secret|credential|passw|cookie|signature|key$", re.IGNORECASE)
"""Names of headers whose values nobody else may know: settings may add any, as ``header.X-Api-Key``."""


def without(secrets: Iterable[str], content: bytes) -> bytes:
    """What a server says, without these."""
    known = {each for each in secrets if each.strip("\\")} if content else set()
    for secret in sorted(known, key=len, reverse=True):
        # Most answers, as that an object is not there, quote nothing: a pattern of all takes longer than the request.
        if re.search(_written(secret[:_BEGIN]).encode(), content):
            content = re.sub(_written(secret).encode(), HIDDEN, content)
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


def _written(secret: str) -> str:
    """A pattern of the ways in which an answer may write a secret.

    Any number of backslashes may stand before a letter, so the secret's own need no letter. They are never given back,
    or an answer of nothing else would be looked through for ever.
    """
    return r"(?<!\\)\\*+" + r"(?:\\|%5[Cc])*+".join(f"(?:{_letter(each)})" for each in secret.replace("\\", ""))


@lru_cache(maxsize=1024)
def _letter(letter: str) -> str:
    """A letter as it is, in JSON, and in an address or a form; its backslash may be gone."""
    units = letter.encode("utf-16-be").hex()
    in_json = r"\\*+".join(f"u{units[at : at + 4]}" for at in range(0, len(units), 4))
    in_address = "".join(f"%{each:02x}" for each in letter.encode())
    short = {" ": r"\+", "\n": "n", "\r": "r", "\t": "t"}.get(letter)
    return "|".join([re.escape(letter), f"(?i:{in_json}|{in_address})", *([short] if short else [])])


def _password_in(authorization: str) -> str:
    try:
        return base64.b64decode(authorization).decode().partition(":")[2]
    except ValueError:
        return ""
