"""The checksums that a table's own files had from format 1.1 on, before 1.4 took in their names."""

from __future__ import annotations

import hashlib
import zlib


def with_unnamed_checksum(location: str, content: bytes) -> bytes:
    """A metadata file, manifest list or manifest, as a keptlog from before has stored it."""
    if location.endswith(".avro"):
        marker = content[-16:]
        blank = content.replace(marker, bytes(16))
        return content.replace(marker, b"klog1" + hashlib.blake2b(blank, digest_size=11).digest())
    return b'{"keptlog-crc32":"%08x",' % zlib.crc32(content) + content[1:]
