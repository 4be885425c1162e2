"""The same random histories with readers and with requests to erase keys in them (``tests.model.requests``)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

from tests.model.requests import Asked, Requesting
from tests.model.test_readers import ReadersMachine
from tests.profiles import examples, is_soak

HAPPENED: Counter[str] = Counter()


class RequestsMachine(Requesting, ReadersMachine):
    """The rules of both."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: dict[str, Asked] = {}
        self.counted = HAPPENED


TestRequests = pytest.mark.timeout(3600)(RequestsMachine.TestCase)
TestRequests.settings = settings(
    max_examples=examples(10),
    stateful_step_count=25,
    deadline=None,
    derandomize=not is_soak(),
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
