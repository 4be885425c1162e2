"""A request with ``--here`` for a topic without a source is refused with what the request does without it."""

from __future__ import annotations

import pytest

from keptlog.passes.erasures.erasure_request import ErasureRequest
from tests.erasure.world import KEY, VALUE, World


@pytest.mark.parametrize(
    ("settings", "instead"),
    [
        (
            {"cleanup.policy": "compact,delete"},
            "leave it out, and tombstones are appended, and cleans remove the records",
        ),
        ({"cleanup.policy": "delete"}, "leave it out, and the records go with their age"),
        (
            {"cleanup.policy": ""},
            "nothing ever goes: delete its records (keptlog delete-records), or have it compacted",
        ),
        (
            {"cleanup.policy": "delete", "retention.ms": "-1"},
            "delete its records (keptlog delete-records), set retention",
        ),
    ],
)
def test_what_is_advised_instead_of_here_is_what_then_happens(
    world: World, settings: dict[str, str], instead: str
) -> None:
    """Tombstones were promised to topics that are not compacted, where none is appended."""
    world.create(settings=settings)
    world.append((KEY, VALUE))
    found = world.eraser.propose(ErasureRequest("r1", ("users",), (KEY,), is_here=True), now_ms=world.now_ms)
    assert found.topics == {}
    assert instead in str(found.failed["users"])
