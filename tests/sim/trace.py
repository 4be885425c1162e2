"""What happened in one history, line by line: every call at a seam, every decision, every fault.

The same seed gives the same trace to the byte, in any process, so a failure that was seen once can be looked at again.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field


@dataclass
class Trace:
    """Lines in the order in which they happened."""

    lines: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        self.lines.append(text)

    @property
    def digest(self) -> str:
        """The same for the same lines, whatever the process."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()

    def tail(self, count: int) -> str:
        """The last lines, with the number of the first one."""
        skipped = max(0, len(self.lines) - count)
        return "\n".join(f"{skipped + number:6} {line}" for number, line in enumerate(self.lines[skipped:]))
