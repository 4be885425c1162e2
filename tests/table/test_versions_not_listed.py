"""A bucket whose versions could not be listed proves nothing: G8 does not pass, and a purge looks again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from keptlog.passes.check import CheckResult, Outcome
from keptlog.passes.holders import check_gone
from keptlog.passes.purge import Purger
from keptlog.table.purge_preview import preview_purge
from keptlog.table.purging.purge_memory import PurgeMemory
from keptlog.table.store import LogStore
from tests.table.buckets import ABucket, new_bucket
from tests.table.counted_s3 import Answer, CountedS3, Request, counted_s3
from tests.table.purges import DAY_MS, MINUTE_MS, clock_ms
from tests.table.stores import TOPIC
from tests.table.test_purge_of_versions import cleaned_in, key_of, location_of

REFUSED: Answer = ("403 Forbidden", "AccessDenied")
BUSY: Answer = ("400 Bad Request", "BadRequest")
"""An answer that nobody waits long for."""


@pytest.fixture
def s3() -> Iterator[CountedS3]:
    with counted_s3() as server:
        yield server


@pytest.fixture
def bucket(s3: CountedS3) -> ABucket:
    return new_bucket(s3.endpoint)


@pytest.fixture
def store(bucket: ABucket, tmp_path: Path) -> LogStore:
    store = cleaned_in(bucket, tmp_path)
    store.seal = lambda _: None
    return store


def answer_listings(s3: CountedS3, of: str, with_: Answer) -> None:
    def refuse(request: Request) -> Answer | None:
        marks = [each.partition("=")[0] for each in request.query.split("&")]
        return with_ if request.method == "GET" and of in marks else None

    s3.refuse = refuse


def g8(store: LogStore, now_ms: int) -> CheckResult:
    return check_gone(store, TOPIC, [0], now_ms)[0]


@pytest.mark.parametrize("answer", [REFUSED, BUSY])
def test_g8_is_not_looked_at_where_a_hidden_file_is_late_and_nobody_can_list_it(
    s3: CountedS3, bucket: ABucket, store: LogStore, answer: Answer
) -> None:
    store.purge(TOPIC, clock_ms() + 60 * MINUTE_MS)
    bucket.hide(bucket.put(key_of(f"{location_of(store)}/data/partition=0/left.parquet")))
    late_ms = clock_ms() + 3 * DAY_MS
    assert g8(store, late_ms).outcome is Outcome.BROKEN
    answer_listings(s3, "versions", answer)
    result = g8(store, late_ms)
    assert (result.outcome, result.passed) == (Outcome.NOT_LOOKED_AT, False)
    assert "not looked at: " in result.description
    assert f"versions below {location_of(store)}/ can't be listed" in result.description


def test_g8_is_not_looked_at_where_uploads_are_not_listed_just_now(s3: CountedS3, store: LogStore) -> None:
    answer_listings(s3, "uploads", BUSY)
    assert g8(store, clock_ms()).outcome is Outcome.NOT_LOOKED_AT


def test_who_may_never_list_uploads_is_judged_without(s3: CountedS3, store: LogStore) -> None:
    answer_listings(s3, "uploads", REFUSED)
    result = g8(store, clock_ms())
    assert result.outcome is Outcome.OK
    assert "this storage does not tell: " in result.description


def test_a_purge_that_could_not_list_versions_makes_the_next_one_look(
    s3: CountedS3, store: LogStore, tmp_path: Path
) -> None:
    purger = Purger(store, PurgeMemory(tmp_path, {}))
    now_ms = clock_ms() + 3 * DAY_MS
    for before_ms in (2 * DAY_MS, 0):  # what is remembered of expired snapshots goes with the second
        assert not purger.purge(now_ms=now_ms - before_ms).failed
    assert purger.purge(now_ms=now_ms + 1).idle == (TOPIC,)
    later_ms = now_ms + 2 * DAY_MS
    answer_listings(s3, "versions", REFUSED)
    assert not purger.purge(now_ms=later_ms).failed
    [told] = store.purge(TOPIC, later_ms).not_looked_at
    assert "can't be listed" in told
    s3.refuse = lambda _: None
    assert purger.purge(now_ms=later_ms + 1).idle == ()
    assert purger.purge(now_ms=later_ms + 2).idle == (TOPIC,)


@pytest.mark.parametrize("answer", [REFUSED, BUSY])
def test_a_preview_says_that_a_hidden_file_may_lie_where_nobody_could_list_it(
    s3: CountedS3, bucket: ABucket, store: LogStore, answer: Answer
) -> None:
    store.purge(TOPIC, clock_ms() + 60 * MINUTE_MS)
    bucket.hide(bucket.put(key_of(f"{location_of(store)}/data/partition=0/left.parquet")))
    late_ms = clock_ms() + 3 * DAY_MS
    assert preview_purge(store, TOPIC, late_ms, DAY_MS).orphans
    answer_listings(s3, "versions", answer)
    preview = preview_purge(store, TOPIC, late_ms, DAY_MS)
    [told] = preview.not_looked_at
    assert f"versions below {location_of(store)}/ can't be listed" in told
    assert str(preview).endswith(f"; not looked at: {told}")
    assert "nothing to purge;" not in str(preview)
