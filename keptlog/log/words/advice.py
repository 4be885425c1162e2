"""What is advised in many places, in the same words."""

from __future__ import annotations

CREATE_TOPIC = "keptlog topic create TOPIC --config cleanup.policy=compact"
"""Where there is no topic at all."""

WHOLE_BACKUP = "put back a whole backup, catalog and files, by which every topic goes back to its time"
"""Where one topic needs an older state: a catalog is that of all topics, and the others lose what came since."""
