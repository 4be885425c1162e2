"""Whether a bucket gives up uploads that nobody completes, below the folder that is asked about."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from examples.lake.fault_proxy import Fault, http_proxy
from keptlog.passes.doctor.catalog_doctor import CatalogDoctor
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.io.files import TableFiles
from tests.table.buckets import ABucket, new_bucket
from tests.table.stores import NOW_MS, new_id

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


def test_who_may_not_ask_for_the_rules_is_told_that_they_were_not_looked_at(
    bucket: ABucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are neither fine nor missing."""
    with http_proxy(str(dict(bucket.properties)["s3.endpoint"])) as proxy:
        proxy.fault = lambda request: Fault.FORBIDDEN if "lifecycle" in request.path else None
        settings = {**dict(bucket.properties), "s3.endpoint": proxy.url, "type": "sql"}
        settings |= {"uri": f"sqlite:///{tmp_path / 'catalog.db'}", "warehouse": f"s3://{bucket.name}/lake"}
        for name, text in settings.items():
            monkeypatch.setenv(
                f"PYICEBERG_CATALOG__KEPTLOG__{name.upper().replace('.', '__').replace('-', '_')}", str(text)
            )
        monkeypatch.setattr("keptlog.passes.doctor.catalog_doctor.PROBES", ())
        found = CatalogDoctor(lambda: open_catalog(tmp_path), new_id, time.sleep).examine(NOW_MS)
        assert proxy.injected[Fault.FORBIDDEN] > 0
    [hint] = found.hints
    assert hint.startswith("whether open uploads are given up is not looked at: ")
    assert f"bucket {bucket.name} can't be asked for its lifecycle rules: access is denied" in hint
    assert "has no lifecycle rule" not in hint
