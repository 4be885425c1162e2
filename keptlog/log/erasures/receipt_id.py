"""The id of an erasure's receipt: whoever has the register knows it, and needs to read no receipt for it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keptlog.log.erasures.erasure import Erasure

ERASURE = "erasure"
"""The kind of these receipts."""
_LONGEST_IN_ID = 40


def receipt_id(topic_id: str, erasure: Erasure) -> str:
    """The same for the same request of the same topic; a request of before, whose id was free again, has another."""
    request = erasure.id
    if len(request) > _LONGEST_IN_ID:
        request = hashlib.sha256(request.encode()).hexdigest()[:_LONGEST_IN_ID]
    return f"{ERASURE}-{topic_id}-{request}-{erasure.requested_ms}"
