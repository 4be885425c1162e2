"""The file from which a code location loads: what a sensor saw of the home last, so that loading asks no catalog.

    <home>/dagster/<digest>.json     line 1: checksum; line 2: whose it is; line 3: ``Seen``, as JSON

Only ``topics_sensor`` writes it, and it says at each of its ticks that the file still holds, by the time of its last
change. So a file is believed as long as somebody keeps it: where no sensor runs there is none, or it is stale, and
loading looks at the home itself. It is believed for one home and one catalog: whose it is stands in it, so a copied
home, or another catalog behind the same home, finds nothing of its own. Nor does another Dagster, as far as its
``DAGSTER_HOME`` tells: what is shown for a backfill of one (``backfills``) is nothing that the other knows of.

It is never the truth, and may be deleted at any time. Whatever is wrong with it costs one look at the catalog.
"""

from __future__ import annotations

import hashlib
import logging
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

from keptlog.dagster.orchestration.seen import Seen
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.errors import InvalidConfig
from keptlog.log.words.iso_time import iso_time
from keptlog.regular_file import read_file
from keptlog.table.catalogs.configuration import catalog_told
from keptlog.whole_file import replace_file

_logger = logging.getLogger(__name__)

FOLDER = "dagster"
FRESH_MS = 600_000
"""So long a file is believed after a tick; ticks come every half minute."""


@dataclass(frozen=True)
class Stored:
    """What a state file says."""

    seen: Seen
    kept_ms: int
    """When it was last said to hold."""

    def is_fresh(self, now_ms: int) -> bool:
        """Whether somebody keeps it. A time that is far ahead says nothing."""
        return abs(now_ms - self.kept_ms) <= FRESH_MS


@dataclass(frozen=True)
class StateFile:
    """Of one mount of a home."""

    path: Path
    whose: str
    """Shown by which Dagster, which topics of which home in which catalog; without secrets."""

    @classmethod
    def of(cls, log_store: LogStoreResource) -> StateFile | None:
        """Where a home's is; null where the catalog's configuration can't be read, which loading will tell."""
        try:
            whose = f"{log_store.identity} {catalog_told()}"
        except InvalidConfig:
            return None
        # Loading knows no more of its Dagster. A code server that is started by itself may not have even that.
        dagster = os.environ.get("DAGSTER_HOME")
        whose = f"{dagster} {whose}" if dagster else whose
        digest = hashlib.sha256(whose.encode()).hexdigest()[:16]
        return cls(log_store.path / FOLDER / f"{digest}.json", whose)

    def read(self) -> Stored | None:
        """What it says; null if it is missing, damaged, somebody else's or another keptlog's."""
        try:
            kept_ms = self.path.stat().st_mtime_ns // 1_000_000
            seen = Seen.of_json(self._text_in(read_file(self.path)))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, LookupError, TypeError) as error:
            told = "the state file %s is not used, and the catalog is asked: %s; topics_sensor writes it anew"
            _logger.warning(told, self.path, error)
            return None
        return Stored(seen, kept_ms) if seen else None

    def _text_in(self, content: bytes) -> str:
        checksum, _, body = content.partition(b"\n")
        if int(checksum, 16) != zlib.crc32(body):
            raise ValueError("it is damaged: its checksum is another one")
        whose, _, text = body.decode().partition("\n")
        if whose != self.whose:
            raise ValueError(f"it is of {whose}")
        return text

    def keep(self, seen: Seen, now_ms: int) -> str | None:
        """Let it say this, as of now. What it says already is not written again. Gives why it can't be written."""
        body = f"{self.whose}\n{seen.as_json()}".encode()
        content = b"%08x\n" % zlib.crc32(body) + body
        try:
            if not self.path.exists() or read_file(self.path) != content:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                replace_file(self.path, content)
            os.utime(self.path, ns=(now_ms * 1_000_000, now_ms * 1_000_000))
        except OSError as error:
            return f"{self.path} can't be written: {error.strerror}"
        return None

    def told(self, stored: Stored) -> str:
        """Of when it is, for people."""
        return f"as they were at {iso_time(stored.kept_ms)}"
