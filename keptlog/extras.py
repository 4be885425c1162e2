"""What ``pip install keptlog`` does not bring: which extra has it, said in one line where it is missing.

Modules that need such a package import it at their head, as any other; nothing that works without it imports them. So
what is missing shows as Python's own ``ModuleNotFoundError``, and whoever talks to the user asks here for what to do.
"""

from __future__ import annotations

from collections.abc import Mapping

EXTRAS: Mapping[str, str] = {
    "boto3": "s3",
    "botocore": "s3",
    "confluent_kafka": "kafka",
    "google_crc32c": "kafka",
    "prometheus_client": "metrics",
    "psycopg2": "postgres",
}
"""Top-level module to the extra in pyproject.toml that brings it."""


def missing_extra(error: BaseException | None) -> str | None:
    """What to install after this error; null unless it is about a module that an extra brings."""
    if not isinstance(error, ModuleNotFoundError):
        return None
    module = (error.name or "").partition(".")[0]
    return f"this needs {module}: pip install 'keptlog[{EXTRAS[module]}]'" if module in EXTRAS else None
