"""What purges have found, put aside on this machine's disk: topics in which nothing is to be done before a time.

    cache/purges/users.json    users lay at 00042-….metadata.json when it was purged: nothing to do before 14:00

It is only ever a reason to leave a topic alone, and never longer than a day (``quiet``); nothing is deleted because of
it. It holds for the settings and the grace it was made with. The files may be deleted at any time; one that is damaged
counts as none. Where there is none, or another machine purges, each purge looks.
"""

from __future__ import annotations

import contextlib
import json
import logging
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from keptlog.table.cache import FOLDER
from keptlog.table.quiet import Quiet
from keptlog.whole_file import replace_file

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Found:
    location: str
    at_ms: int
    until_ms: int
    settings: int
    """Checksum of the broker settings."""
    orphan_grace_ms: int


@dataclass(frozen=True)
class PurgeMemory:
    """Of one home. Kept where there is a home; beside a configured catalog (``is_made``) the folder is made for it."""

    home: Path
    broker_settings: Mapping[str, str]
    is_made: bool = False

    def is_quiet(self, topic: str, location: str, now_ms: int, orphan_grace_ms: int) -> bool:
        """Whether nothing is to be purged of a topic whose metadata lies there."""
        try:
            found = _Found(**json.loads(self._path(topic).read_bytes()))
            is_same = (found.location, found.settings, found.orphan_grace_ms) == (
                location,
                self._settings,
                orphan_grace_ms,
            )
            return bool(location) and is_same and found.at_ms <= now_ms < found.until_ms
        except (OSError, ValueError, TypeError):
            return False

    def begin(self, topic: str) -> None:
        """A purge begins: who is killed in it leaves something to do."""
        with contextlib.suppress(OSError):
            self._path(topic).unlink()

    def end(self, topic: str, quiet: Quiet, now_ms: int, orphan_grace_ms: int) -> None:
        """Remember what a purge has found; what can't be written is not remembered."""
        found = _Found(quiet.location, now_ms, quiet.until_ms, self._settings, orphan_grace_ms)
        try:
            if self.is_made or self.home.is_dir():
                self._path(topic).parent.mkdir(parents=True, exist_ok=True)
                replace_file(self._path(topic), json.dumps(asdict(found)).encode())
        except OSError as error:
            _logger.debug("topic %s: that nothing is to be purged can't be remembered: %s", topic, error)

    @property
    def _settings(self) -> int:
        return zlib.crc32(json.dumps(sorted(self.broker_settings.items())).encode())

    def _path(self, topic: str) -> Path:
        return self.home / FOLDER / "purges" / f"{topic}.json"
