"""How the names of properties begin that are keptlog's; ``keptlog.table.metadata.state`` says what they are."""

from __future__ import annotations

STATE_PREFIX = "log."
CONFIG_PREFIX = "kafka."
DEFAULT_PREFIX = "log.default."
READER_PREFIX = "log.reader."
