"""What a file of records holds, and how its name tells it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path


class Format(StrEnum):
    """What a file holds."""

    JSONL = "jsonl"
    PARQUET = "parquet"
    DEBEZIUM = "debezium"


SUFFIXES = {".parquet": Format.PARQUET, ".jsonl": Format.JSONL, ".ndjson": Format.JSONL, ".json": Format.JSONL}


def format_of(path: str) -> Format | None:
    """What a file holds by its name; null if that does not tell."""
    return SUFFIXES.get(unpacked_suffix(path))


def unpacked_suffix(path: str) -> str:
    """How the name of a file ends, in small letters, once it is unpacked with gzip."""
    return Path(path.lower().removesuffix(".gz")).suffix
