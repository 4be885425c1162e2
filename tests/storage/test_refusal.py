"""What an object store refuses for good is told from what it does not do just now."""

from __future__ import annotations

import errno
import pickle

import pytest

from keptlog.storage.refusal import StoreRefused, refused_upload, store_refusal_of

_UPLOAD = "When uploading object with key 'topic/x' in bucket 'lake': AWS Error "
_QUOTED = "Unable to parse ExceptionName: {0} Message: {0}, as told"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (f"UNKNOWN (HTTP status 400) during PutObject operation: {_QUOTED.format('ExpiredToken')}", "have expired"),
        ("ACCESS_DENIED during UploadPart operation: Access Denied.", "access is denied"),
        ("NO_SUCH_BUCKET during CreateMultipartUpload operation: no", "the bucket does not exist"),
        ("INVALID_ACCESS_KEY_ID during PutObject operation: no", "does not know these credentials"),
    ],
)
def test_an_upload_that_is_refused_for_good_says_why_and_what_to_do(said: str, why: str) -> None:
    refusal = refused_upload(OSError(_UPLOAD + said), "s3://lake/topic/x")
    assert refusal is not None
    assert str(refusal).startswith("s3://lake/topic/x can't be written: ")
    assert why in str(refusal)
    assert refusal.errno == errno.EACCES


@pytest.mark.parametrize(
    "said",
    [
        "SLOW_DOWN during PutObject operation: slow down",
        "NETWORK_CONNECTION during PutObject operation: curlCode: 52",
        "UNKNOWN (HTTP status 503) during PutObject operation: No response body.",
        "ACCESS_DENIED during GetObject operation: somebody else's",
    ],
)
def test_what_may_be_taken_at_another_time_is_no_refused_upload(said: str) -> None:
    assert refused_upload(OSError(_UPLOAD + said), "s3://lake/topic/x") is None


def test_a_refusal_is_found_behind_the_error_that_it_led_to_and_after_a_pickle() -> None:
    refusal = StoreRefused("s3://lake/x can't be read", "ExpiredToken")
    again: StoreRefused = pickle.loads(pickle.dumps(refusal))  # noqa: S301  # our own
    assert str(again) == "s3://lake/x can't be read: the credentials have expired (ExpiredToken); renew the credentials"
    led_to = ValueError()
    led_to.__cause__ = again
    assert store_refusal_of(led_to) == str(refusal)


def test_a_list_or_a_read_of_arrows_that_is_refused_for_good_is_told_too() -> None:
    said = (
        "When listing objects under key 'a/' in bucket 'lake': AWS Error NO_SUCH_BUCKET during ListObjectsV2 operation"
    )
    assert store_refusal_of(OSError(said)) == (
        "When listing objects under key 'a/' in bucket 'lake': the bucket does not exist (NoSuchBucket); create it, or "
        "correct the warehouse of the catalog"
    )
    assert store_refusal_of(OSError(said.replace("NO_SUCH_BUCKET", "SLOW_DOWN"))) is None
    assert store_refusal_of(ValueError(said)) is None
