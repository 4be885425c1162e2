"""Arrow's client for S3, as PyIceberg's properties describe it, but patient and with fewer requests.

1. It tries a request again more often: three attempts, Arrow's own choice, are too few for a busy store.
2. A file that is small enough is one PUT, sent when it is closed, and not an upload of three requests. What is wrong
   with the bucket then shows at the end, which is as good: nobody refers to a file before it is closed.
3. Where the store's certificate is of an authority of one's own, it knows that by the variable, or the profile, that
   boto3 knows. Arrow reads another variable and no profile, so metadata would land, and no segment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pyarrow.fs as pafs
from pyiceberg.io import S3_RETRY_STRATEGY_IMPL
from pyiceberg.io.pyarrow import PyArrowFileIO, _import_retry_strategy
from pyiceberg.typedef import EMPTY_DICT, Properties
from typing_extensions import override

from keptlog.errors import NoStoreClient
from keptlog.table.io.addresses import parts_of
from keptlog.table.io.aws_profile import authority_of_profile
from keptlog.table.io.files import local_path
from keptlog.table.waiting.reaching import one_line

ATTEMPTS = 6
"""With pauses of up to 1, 2, 4, 8 and 16 s between them, half of that on average: an outage is told after 16 s."""

_CA_BUNDLE, _CA_FILE = "AWS_CA_BUNDLE", "tls_ca_file_path"
"""boto3's variable, and Arrow's argument."""


def patient(filesystem: pafs.FileSystem, properties: Mapping[str, Any]) -> pafs.FileSystem:
    """The same client, if it is one for S3, but for that; what the properties say of retries is not changed."""
    if not isinstance(filesystem, pafs.S3FileSystem):
        return filesystem
    # What it was made of, as it tells a process that it is sent to.
    _, (made_of,) = filesystem.__reduce__()
    chosen = properties.get(S3_RETRY_STRATEGY_IMPL)
    retries = _import_retry_strategy(chosen) if chosen else None
    retries = retries or pafs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS)
    made_of |= _own_authority(made_of)
    return pafs.S3FileSystem(**made_of | {"allow_delayed_open": True, "retry_strategy": retries})


def _own_authority(made_of: Mapping[str, Any]) -> dict[str, str]:
    """The file of whoever signs the certificate; empty where none is named, and for an Arrow that takes none."""
    named = os.environ[_CA_BUNDLE] if _CA_BUNDLE in os.environ else authority_of_profile()
    return {_CA_FILE: named} if named and not made_of.get(_CA_FILE, named) else {}


class PatientFileIO(PyArrowFileIO):
    """PyIceberg's file access, with that client, and paths as they are."""

    @override
    @staticmethod
    def parse_location(location: str, properties: Properties = EMPTY_DICT) -> tuple[str, str, str]:
        """Scheme, authority and path; those of a disk are PyIceberg's business.

        Raises:
            StoreRefused: a folder on the way has no name.
        """
        is_local = local_path(location) is not None
        return PyArrowFileIO.parse_location(location, properties) if is_local else parts_of(location)

    @override
    def _initialize_fs(self, scheme: str, netloc: str | None = None) -> pafs.FileSystem:
        """The client for a kind of store.

        Raises:
            NoStoreClient: nobody knows one, or it can't be made with these settings.
        """
        try:
            return super()._initialize_fs(scheme, netloc)
        except (ValueError, TypeError, LookupError, ModuleNotFoundError) as error:
            raise NoStoreClient(
                f"the client for {scheme}:// can't be made ({one_line(error)}): correct the location of the table, "
                "the warehouse of the catalog, or its settings for that store"
            ) from error

    @override
    def _initialize_s3_fs(self, netloc: str | None) -> pafs.FileSystem:
        return patient(super()._initialize_s3_fs(netloc), self.properties)
