"""The keys of an erasure, as somebody gives them: on the command line or in a file, as text, hex, base64 or hashes.

What is wrong is told by its place, never by its content: a key has no place in an error.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from keptlog.errors import InvalidConfig
from keptlog.storage.key_hash import TOLD_FORM, told_hash

FORMATS = ("text", "hex", "base64", "hash")
_WANTED = {
    "text": "a key in UTF-8",
    "hex": "a key as hex",
    "base64": "a key as base64",
    "hash": f"the hash of a key ({TOLD_FORM})",
}


@dataclass(frozen=True, slots=True)
class GivenKeys:
    """Keys as they are, and those that only their keyed hashes are known of; each once, in their order."""

    keys: tuple[bytes, ...] = field(repr=False)
    key_hashes: tuple[str, ...] = field(repr=False)


def given_keys(options: Sequence[tuple[str, Sequence[str]]], path: str | None, form: str) -> GivenKeys:
    """The keys of the options (format and texts) and of a file, one a line; ``-`` is standard input.

    Raises:
        InvalidConfig: one is not of its format, or the file can't be read or is empty.
    """
    found = [
        (each, _decoded(text, each, "--key" if each == "text" else f"--key-{each}"))
        for each, texts in options
        for text in texts
    ]
    if path is not None:
        found += [(form, each) for each in _from_file(path, form)]
    return GivenKeys(
        tuple(dict.fromkeys(key for each, key in found if each != "hash")),
        tuple(dict.fromkeys(key.decode() for each, key in found if each == "hash")),
    )


def _from_file(path: str, form: str) -> list[bytes]:
    try:
        content = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise InvalidConfig(f"--keys {path} can't be read: {error.strerror}") from None
    where = "standard input" if path == "-" else path
    try:
        # A byte order mark, as some editors write, would be part of the first key: another one, which nobody has.
        lines = content.removeprefix(codecs.BOM_UTF8).decode().split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidConfig(
            f"{where} line {line} is not UTF-8: write keys that are no text as hex or base64 (--keys-format)"
        ) from None
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise InvalidConfig(f"{where} has no keys: write one a line")
    return [_decoded(line.removesuffix("\r"), form, f"{where} line {number}") for number, line in enumerate(lines, 1)]


def _decoded(text: str, form: str, where: str) -> bytes:
    try:
        key = _DECODERS[form](text)
    except (ValueError, binascii.Error):
        raise InvalidConfig(f"{where} is not {_WANTED[form]}") from None
    if not key:
        raise InvalidConfig(f"{where} is empty: a key has at least one byte")
    return key


_DECODERS: Mapping[str, Callable[[str], bytes]] = {
    "text": lambda text: text.encode(),
    "hex": bytes.fromhex,
    "base64": lambda text: base64.b64decode(text, validate=True),
    "hash": lambda text: str(told_hash(text)).encode(),
}
