"""Words for bytes that are no text, by how they begin: what they are, and what to do."""

from __future__ import annotations

HEAD_BYTES = 4
"""So many tell."""
GZIP = b"\x1f\x8b"
_UTF_16 = "it is UTF-16: write it as UTF-8 (iconv -f UTF-16 -t UTF-8 FILE)"
_PACKED = {
    b"\x28\xb5\x2f\xfd": "it is compressed with zstd: unpack it (zstd -dc FILE)",
    b"BZh": "it is compressed with bzip2: unpack it (bzip2 -dc FILE)",
    b"\xfd7zX": "it is compressed with xz: unpack it (xz -dc FILE)",
    b"PK\x03\x04": "it is a zip archive: unpack it",
}
_BEGINNINGS = {**_PACKED, b"\xff\xfe": _UTF_16, b"\xfe\xff": _UTF_16}


def why_no_text(head: bytes) -> str | None:
    """Why a file that begins so is no text in UTF-8; null if nothing speaks against it. Of gzip nothing is said."""
    for beginning, why in _BEGINNINGS.items():
        if head.startswith(beginning):
            return why
    if b"\0" in head[:2]:
        return _UTF_16 if head[:2].strip(b"\0") else "it begins with zeros, and so is no text"
    return None


def why_packed(head: bytes) -> str | None:
    """What a file that begins so is packed with, also if that is gzip; null if it is not packed."""
    if head.startswith(GZIP):
        return "it is compressed with gzip: unpack it (gzip -dc FILE)"
    return next((why for beginning, why in _PACKED.items() if head.startswith(beginning)), None)
