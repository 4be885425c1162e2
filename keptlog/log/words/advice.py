"""What is advised in many places, in the same words."""

from __future__ import annotations

CREATE_TOPIC = "keptlog topic create TOPIC --config cleanup.policy=compact"
"""Where there is no topic at all."""
