"""Takes the secrets of a request out of what a server says of it: some quote what they don't take.

AWS quotes all that was signed where it does not take the signature, the session's token among it.

A password is sent in base64, and may be quoted in readable form. An answer is JSON, XML or a page, and what it quotes
may be one of these itself, or the form that was sent. Each writer escapes what he likes: PHP a slash, Gson a =, .NET
a +, each of which a token has, and HTML has names for all of them. None escapes a letter of ASCII or a digit.

What a refusal says becomes an error, which is told, logged and stored.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from html.entities import html5

HIDDEN = b"[hidden]"
_LEAST = 4
"""Letters of a secret. What is shorter, as a header.X-Auth-Version of 2, is none, and part of any answer's codes."""
_PLAIN = "[A-Za-z0-9]+"
_PARTS = re.compile(rf"({_PLAIN})|[^\\]")
"""Of a secret: what nobody escapes, and letters that somebody may. Its backslashes are those between two parts."""
_AND = "(?:&|u0026)(?:amp;)*"
"""What a letter of a page begins with, also of one in a page, or in JSON, where Go escapes that too."""
_BACKSLASH = rf"\\|%5[Cc]|u005[Cc]|{_AND}(?:#0*92|#[Xx]0*5[Cc]|bsol);"
_IS_SECRET = re.compile(r"auth|token|secret|credential|passw|cookie|signature|key$", re.IGNORECASE)
"""Names of headers whose values nobody else may know: settings may add any, as ``header.X-Api-Key``."""


def without(secrets: Iterable[str], content: bytes) -> bytes:
    """What a server says, without these."""
    known = {each for each in secrets if len(each.replace("\\", "")) >= _LEAST} if content else set()
    for secret in sorted(known, key=len, reverse=True):
        # Most answers, as that an object is not there, quote nothing: to make a pattern takes longer than the request.
        if all(plain[0].encode() in content for plain in re.finditer(_PLAIN, secret)):
            content = re.sub(_written(secret), HIDDEN, content)
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


def _written(secret: str) -> bytes:
    """A pattern of the ways in which an answer may write a secret, with any number of backslashes before each part.

    A match begins with the first of those, or an answer of nothing else would be looked through for ever.
    """
    parts = (part[1] or _letter(part[0]) for part in _PARTS.finditer(secret))
    return (r"(?<!\\)\\*+" + f"(?:{_BACKSLASH})*".join(parts)).encode()


def _letter(letter: str) -> str:
    """One in XML or a page, in JSON, in an address or a form, and as it is; its backslash has gone before.

    What is longer goes first, or the end of an &amp; would be left.
    """
    code, units = ord(letter), letter.encode("utf-16-be").hex()
    in_json = r"\\*+".join(f"u{units[at : at + 4]}" for at in range(0, len(units), 4))
    in_xml = rf"{_AND}(?:#0*{code}|#x0*{code:x}{''.join(f'|{name}' for name in _names().get(letter, ()))});"
    in_address = "".join(f"%{each:02x}" for each in letter.encode())
    short = {" ": r"\+", "\n": "n", "\r": "r", "\t": "t"}.get(letter)
    return f"(?i:{'|'.join([in_xml, in_json, in_address, *([short] if short else []), re.escape(letter)])})"


@lru_cache(maxsize=1)
def _names() -> dict[str, list[str]]:
    """Letters to what HTML calls them."""
    names: dict[str, list[str]] = {}
    for name, letter in html5.items():
        if name.endswith(";"):
            names.setdefault(letter, []).append(name[:-1])
    return names


def _password_in(authorization: str) -> str:
    try:
        return base64.b64decode(authorization).decode().partition(":")[2]
    except ValueError:
        return ""
