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
    return f"{id_beginning(topic_id, erasure.id)}{erasure.requested_ms}"


def id_beginning(topic_id: str, request_id: str) -> str:
    """How the ids of all receipts begin that are of requests of this id; when each was made stands behind it."""
    if len(request_id) > _LONGEST_IN_ID:
        request_id = hashlib.sha256(request_id.encode()).hexdigest()[:_LONGEST_IN_ID]
    return f"{ERASURE}-{topic_id}-{request_id}-"
