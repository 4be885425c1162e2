"""What a metadata file says as JSON, for who needs a word of it and can't know that it is a table's.

A view's files are named as a table's are. And another engine may pack them with gzip: ``v3.gz.metadata.json`` with
most, ``v3.metadata.json.gz`` with some. So the first bytes tell, and no name.
"""

from __future__ import annotations

import zlib
from typing import Any

from keptlog.foreign_json import json_value

_GZIP = b"\x1f\x8b"


def metadata_json(content: bytes) -> dict[str, Any]:
    """A metadata file's content, packed or not.

    Raises:
        ValueError: it is damaged, or no object of JSON.
    """
    try:
        told = json_value(_unpacked(content) if content.startswith(_GZIP) else content)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"it is damaged: {error}") from error
    if isinstance(told, dict):
        return told
    raise ValueError("it is no object of JSON")


def is_of_a_view(content: bytes) -> bool:
    """Whether a metadata file is a view's and no table's.

    Raises:
        ValueError: it is damaged, or no object of JSON.
    """
    return "view-uuid" in metadata_json(content)


def _unpacked(content: bytes) -> bytes:
    import gzip  # noqa: PLC0415  # keptlog packs none

    return gzip.decompress(content)
