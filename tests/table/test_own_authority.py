"""A store whose certificate is of an authority of one's own is reached by both clients, if one place names that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from keptlog.table.io.files import TableFiles
from keptlog.table.io.remote_files import create_remote, open_remote
from keptlog.table.waiting.reach import todo_about
from tests.spark.tls import tls_before, write_certificate
from tests.table.buckets import ABucket


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return write_certificate(tmp_path)


@pytest.fixture
def behind(bucket: ABucket, certificate: Path) -> Iterator[TableFiles]:
    """Files in the bucket, by a port that speaks TLS."""
    known = dict(bucket.properties)
    port = urlsplit(known["s3.endpoint"]).port or 0
    with tls_before(port, certificate, "http/1.1") as secure:
        yield TableFiles(tuple(sorted((known | {"s3.endpoint": f"https://127.0.0.1:{secure}"}).items())))


def test_the_variable_that_is_named_helps_both_clients(
    bucket: ABucket, behind: TableFiles, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    require_both_reach(bucket, behind)


@pytest.mark.parametrize("variable", ["AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"])
def test_so_does_the_profile(
    bucket: ABucket, behind: TableFiles, certificate: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    told = certificate.with_name("told")
    told.write_text(f"[default]\nca_bundle = {certificate}\n")
    monkeypatch.setenv(variable, str(told))
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    require_both_reach(bucket, behind)


def test_the_variable_goes_before_the_profile(
    bucket: ABucket, behind: TableFiles, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = certificate.with_name("told")
    told.write_text("[default]\nca_bundle = /nowhere.pem\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(told))
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    require_both_reach(bucket, behind)


def require_both_reach(bucket: ABucket, behind: TableFiles) -> None:
    path = f"s3://{bucket.name}/w/0"
    with create_remote(behind.properties, path) as sink:
        sink.write(b"records")
    assert behind.read_bytes(path) == b"records"
    assert open_remote(behind.properties, path, 1 << 30).read() == b"records"


def test_without_it_arrow_says_what_boto3_says(
    bucket: ABucket, behind: TableFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    properties = dict(behind.properties) | {"s3.retry-strategy-impl": "pyarrow.fs.AwsStandardS3RetryStrategy"}
    sink = create_remote(tuple(sorted(properties.items())), f"s3://{bucket.name}/w/0")
    sink.write(b"records")
    with pytest.raises(OSError, match="curlCode: 60") as refused:
        sink.close()
    assert "in AWS_CA_BUNDLE for a store; Spark's executors need the latter too" in todo_about(refused.value)
