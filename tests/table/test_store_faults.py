"""An object store that is busy, breaks off, refuses, or is gone: nothing is lost, and what is said is one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.errors import KeptlogError, StorageUnavailable
from keptlog.storage.refusal import StoreRefused
from keptlog.table.store import LogStore
from tests.table.buckets import ABucket
from tests.table.counted_s3 import BROKEN_OFF, RESET, Answer, CountedS3, Request
from tests.table.stores import COMPACTED, NOW_MS, TOPIC, new_id, new_records
from tests.table.test_requests import append, bucket, filled, rewrite, s3, server, store, store_in

__all__ = ["bucket", "s3", "server", "store"]

EXPIRED: Answer = ("400 Bad Request", "ExpiredToken")
DENIED: Answer = ("403 Forbidden", "AccessDenied")
BUSY: Answer = ("503 Slow Down", "SlowDown")
MAY_PASS = {
    "slow down": BUSY,
    "internal error": ("500 Internal Server Error", "InternalError"),
    "reset": RESET,
    "answer broken off": BROKEN_OFF,
}


def every(number: int, answer: Answer) -> Callable[[Request], Answer | None]:
    """Each so-many-th request meets it; what breaks off has to have an answer with something in it."""
    return lambda request: answer if request.number % number == 0 and _meets(request, answer) else None


def _meets(request: Request, answer: Answer) -> bool:
    return answer != BROKEN_OFF or request.method == "GET"


def always(answer: Answer, *methods: str) -> Callable[[Request], Answer | None]:
    return lambda request: answer if not methods or request.method in methods else None


@pytest.fixture
def at(store: LogStore, s3: CountedS3, bucket: ABucket) -> tuple[LogStore, CountedS3, ABucket]:
    return store, s3, bucket


def open_uploads(bucket: ABucket) -> list[str]:
    return [each["Key"] for each in bucket.client.list_multipart_uploads(Bucket=bucket.name).get("Uploads", ())]


def stored(bucket: ABucket) -> set[str]:
    return {each["Key"] for each in bucket.client.list_objects_v2(Bucket=bucket.name).get("Contents", ())}


@pytest.mark.parametrize("fault", MAY_PASS)
def test_what_may_pass_is_asked_for_again_until_it_does(
    store: LogStore, s3: CountedS3, fault: str, tmp_path: Path
) -> None:
    filled(store, 2, 2)
    expected = [(partition, record.offset, record.value) for partition, record in store.read(TOPIC, latest=True)]
    s3.forget()
    s3.refuse = every(4, MAY_PASS[fault])
    store.append(TOPIC, new_records(("new", "1"), partition=1), new_id(), NOW_MS)
    store.swap(TOPIC, rewrite(store), new_id())
    read = [(partition, record.offset, record.value) for partition, record in store.read(TOPIC, latest=True)]
    assert read == [*expected, (1, 40, b"1")]
    assert any(request.number % 4 == 0 for request in s3.requests)


@pytest.mark.parametrize(
    ("answer", "why"), [(EXPIRED, "the credentials have expired (ExpiredToken)"), (DENIED, "access is denied")]
)
@pytest.mark.parametrize("refused", ["reads", "writes"])
def test_what_is_refused_for_good_is_said_at_once_in_one_line_and_leaves_nothing(
    at: tuple[LogStore, CountedS3, ABucket], answer: Answer, why: str, refused: str
) -> None:
    store, s3, bucket = at
    methods = ("GET", "HEAD") if refused == "reads" else ("PUT", "POST")
    filled(store, 1, 1)
    before = stored(bucket)
    s3.forget()
    s3.refuse = always(answer, *methods)
    with pytest.raises(StorageUnavailable) as caught:
        append(store, 1)
    s3.refuse = lambda _: None
    assert why in str(caught.value)
    assert f"s3://{bucket.name}/warehouse/" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("; try again then" if refused == "reads" else "; nothing landed: try again then")
    assert len(s3.requests) < 20
    assert stored(bucket) == before
    append(store, 1)
    assert len(list(store.read(TOPIC))) == 40


def test_a_task_that_is_refused_says_why_and_is_not_tried_again(store: LogStore, s3: CountedS3) -> None:
    filled(store, 1, 3)
    s3.refuse = lambda request: EXPIRED if request.path.endswith(".parquet") else None
    s3.forget()
    with pytest.raises(StorageUnavailable, match=r"partition=0/.*: the credentials have expired") as caught:
        rewrite(store)
    assert "Spark" not in str(caught.value)


def test_a_bucket_that_is_gone_is_no_damage_and_no_other_commit(
    store: LogStore, bucket: ABucket, tmp_path: Path
) -> None:
    filled(store, 1, 2)
    steps_of = store.logs(TOPIC)
    for key in stored(bucket):
        bucket.client.delete_object(Bucket=bucket.name, Key=key)
    bucket.client.delete_bucket(Bucket=bucket.name)
    for ask in (
        lambda: list(store.read(TOPIC)),
        lambda: append(store, 1),
        lambda: store_in(bucket, tmp_path).logs(TOPIC),
        lambda: list(store.files.list(f"s3://{bucket.name}/warehouse")),
        lambda: store.files.exists(steps_of[0].segments[0].path),
    ):
        with pytest.raises((KeptlogError, OSError), match=r"the bucket does not exist \(NoSuchBucket\)") as caught:
            ask()
        assert isinstance(caught.value, StorageUnavailable | StoreRefused)


@pytest.mark.parametrize("answer", [DENIED, EXPIRED])
@pytest.mark.parametrize("is_of_a_task", [False, True])
def test_an_upload_of_which_a_part_is_refused_leaves_nothing_open(
    bucket: ABucket, s3: CountedS3, answer: Answer, *, is_of_a_task: bool
) -> None:
    path = f"s3://{bucket.name}/topic/data/large.parquet"
    s3.refuse = lambda request: answer if request.kind == "PUT uploadId" else None

    def write() -> None:
        if is_of_a_task:
            with bucket.files.durable_at_end() as files, files.open_output(path) as sink:
                sink.write(bytes(25 * 2**20))
        else:
            with bucket.files.open_output(path) as sink:
                sink.write(bytes(25 * 2**20))

    with pytest.raises(StoreRefused, match=f"^{path} can't be written: "):
        write()
    s3.refuse = lambda _: None
    assert open_uploads(bucket) == []
    assert stored(bucket) == set()


def test_an_upload_of_which_a_part_fails_once_comes_through(bucket: ABucket, s3: CountedS3) -> None:
    path, content = f"s3://{bucket.name}/large", b"0123456789abcdef" * (25 * 2**16)
    s3.forget()
    s3.refuse = every(3, BUSY)
    with bucket.files.open_output(path) as sink:
        sink.write(content)
    s3.refuse = lambda _: None
    assert s3.kinds()["PUT uploadId"] > 3
    assert bucket.files.read_bytes(path) == content


def test_a_file_of_a_task_that_could_not_be_sent_fails_the_task(bucket: ABucket, s3: CountedS3) -> None:
    path = f"s3://{bucket.name}/topic/data/small.parquet"

    def write() -> None:
        with bucket.files.durable_at_end() as files:
            with files.open_output(path) as sink:
                sink.write(b"value")
            s3.refuse = always(DENIED, "PUT")

    s3.delay_seconds = 0.2
    s3.refuse = always(DENIED, "PUT")
    try:
        with pytest.raises(StoreRefused, match="access is denied"):
            write()
    finally:
        s3.delay_seconds = 0.0
    s3.refuse = lambda _: None
    assert stored(bucket) == set()


def test_a_file_of_a_task_is_there_for_whoever_reads_or_deletes_it_in_the_task(bucket: ABucket, s3: CountedS3) -> None:
    one, other = (f"s3://{bucket.name}/staging/{name}" for name in ("one", "other"))
    s3.delay_seconds = 0.05
    try:
        with bucket.files.durable_at_end() as files:
            files.write_bytes(one, b"1")
            files.write_bytes(other, b"2")
            assert files.read_bytes(one) == b"1"
            files.delete(other)
    finally:
        s3.delay_seconds = 0.0
    assert stored(bucket) == {"staging/one"}


def test_a_delete_leaves_no_marker_of_its_folder_where_the_bucket_does_not_say_whether_it_keeps_versions(
    bucket: ABucket, s3: CountedS3
) -> None:
    path = f"s3://{bucket.name}/topic/data/partition=0/x.parquet"
    s3.refuse = lambda request: DENIED if request.kind == "GET versioning" else None
    bucket.files.write_bytes(path, b"value")
    bucket.files.delete(path)
    assert bucket.files.delete_many([path]) == ()
    assert stored(bucket) == set()


def test_a_new_topic_leaves_no_marker_of_a_folder(store: LogStore, bucket: ABucket) -> None:
    store.create_topic(TOPIC, 1, COMPACTED)
    append(store, 1)
    store.delete_topic(TOPIC, NOW_MS)
    assert not [key for key in stored(bucket) if key.endswith("/") or "/" not in key]
