"""Whether a bucket gives up uploads that nobody completes, below the folder that is asked about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keptlog.table.files import TableFiles
from tests.table.buckets import ABucket, new_bucket

ABORT = {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}}
ON = {"Status": "Enabled"}


@pytest.fixture
def bucket(s3_endpoint: str) -> ABucket:
    return new_bucket(s3_endpoint, None)


def why(bucket: ABucket, *rules: dict[str, Any]) -> str | None:
    named = [{"ID": f"rule-{number}", **rule} for number, rule in enumerate(rules)]
    if named:
        bucket.client.put_bucket_lifecycle_configuration(Bucket=bucket.name, LifecycleConfiguration={"Rules": named})
    return bucket.files.why_uploads_stay(f"s3://{bucket.name}/lake/keptlog")


def test_a_bucket_without_rules_keeps_them_and_it_is_said_what_to_add(bucket: ABucket) -> None:
    said = why(bucket)
    assert said
    assert said.startswith(
        f"bucket {bucket.name} has no lifecycle rule that aborts incomplete multipart uploads below "
    )
    assert "lake/keptlog/" in said
    assert "AbortIncompleteMultipartUpload" in said


@pytest.mark.parametrize("below", [{"Filter": {"Prefix": ""}}, {"Filter": {"Prefix": "lake/"}}, {"Prefix": "lake"}])
def test_a_rule_for_all_or_for_a_folder_above_is_enough(bucket: ABucket, below: dict[str, Any]) -> None:
    assert why(bucket, {**ON, **ABORT, **below}) is None


@pytest.mark.parametrize(
    "rule",
    [
        {**ON, "Filter": {"Prefix": ""}, "Expiration": {"Days": 3}},
        {"Status": "Disabled", "Filter": {"Prefix": ""}, **ABORT},
        {**ON, "Filter": {"Prefix": "other/"}, **ABORT},
        {**ON, "Filter": {"Prefix": "lake/keptlog/users/"}, **ABORT},
    ],
)
def test_a_rule_of_another_kind_or_place_or_one_that_is_off_is_not(bucket: ABucket, rule: dict[str, Any]) -> None:
    assert why(bucket, rule)


def test_a_disk_has_no_uploads(tmp_path: Path) -> None:
    assert TableFiles(()).why_uploads_stay(f"file://{tmp_path}") is None


def test_a_bucket_that_is_gone_is_an_error_of_the_storage(bucket: ABucket) -> None:
    with pytest.raises(OSError, match="lifecycle rules"):
        bucket.files.why_uploads_stay("s3://no-such-bucket-anywhere/lake")
