"""Files that are not local, by path, as a catalog's properties say how to get there.

Of S3, boto3 reads and writes what is small, in one request, and lists (``object_reads``). Whatever else there is to do,
and all of it where the store is another one, PyIceberg's filesystem of Arrow does.

Where boto3 is missing Arrow reads, and writes what is looked at before its commit. It takes a page with status 200 for
an empty list, a file that exists, a file that was written and a deletion that was done. So whatever follows from these
is refused there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING

from keptlog.storage.files import SMALL_BYTES, StoredFile
from keptlog.storage.refusal import StoreRefused, refused_listing, refused_upload
from keptlog.table.io.addresses import parts_of
from keptlog.table.io.vending import for_path

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs as pafs

    from keptlog.table.io.files import Properties

S3 = ("s3://", "s3a://", "s3n://")
_OF_STORAGE = ("s3.", "client.", "gcs.", "adls.", "hdfs.", "hf.", "DEFAULT_", "keptlog.")
"""Begin the names of the properties that PyIceberg's filesystems read, and of our own."""
_NS_PER_MS = 1_000_000


def storage_properties(properties: Properties) -> Properties:
    """What of a catalog's properties says how storage is reached, with its credentials."""
    return tuple((name, value) for name, value in properties if name.startswith(_OF_STORAGE))


def client_properties(properties: Properties, path: str) -> Properties:
    """What of a catalog's, or a table's, properties is about the client for S3 with which a path is reached.

    The others change with each commit.
    """
    known = for_path(properties, path)
    return tuple(sorted((name, value) for name, value in known if name.startswith(("s3.", "client."))))


def open_remote(properties: Properties, path: str, size_bytes: int | None = None) -> pa.NativeFile:
    """Open a file for random reads; ``size_bytes`` is how long it should be, where that is known.

    Raises:
        FileNotFoundError: it is gone.
        OSError: the store does not give it.
    """
    reads = _object_reads(path)
    if reads and (size_bytes is None or size_bytes <= SMALL_BYTES):
        # If it is longer than it should be, who knows how long that is will say so.
        content, stored_bytes = reads.end_of_object(properties, path, SMALL_BYTES)
        if len(content) == stored_bytes:
            import pyarrow as pa  # noqa: PLC0415  # as below

            return pa.BufferReader(content)
    filesystem, inner = _filesystem_of(properties, path)
    try:
        return filesystem.open_input_file(inner)
    except OSError as error:
        if reads:
            # A HEAD gives no reason, so that a bucket, or a store, that is gone looks like a file that is gone.
            reads.end_of_object(properties, path, 1)
        if reads and isinstance(error, FileNotFoundError):
            raise OSError(f"{path} is there, and was not where the store was asked for its size") from error
        raise


def require_known(properties: Properties, path: str) -> None:
    """Whether there is a client for the store of a path.

    Raises:
        NoStoreClient: none can be made.
        OSError: this path is none there, or the store does not answer.
    """
    _filesystem_of(properties, path)


def create_remote(properties: Properties, path: str) -> pa.NativeFile:
    """Begin a file; it is there once it is closed."""
    filesystem, inner = _filesystem_of(properties, path)
    with told_why(path):
        return filesystem.open_output_stream(inner)


def write_remote(properties: Properties, path: str, content: bytes, *, is_whole_now: bool) -> bool:
    """Write a small file whole; gives whether it was, which of another store than S3 ``is_whole_now`` asks for.

    Raises:
        OSError: it may not have been written. What was there before is left there: it may be an earlier one.
    """
    reads = _trusted_reads(path, "written")
    if reads:
        reads.put_object(properties, path, content)
    elif is_whole_now:
        _write_by_arrow(properties, path, content)
    return bool(reads) or is_whole_now


def _write_by_arrow(properties: Properties, path: str, content: bytes) -> None:
    """Write a small file to another store than S3."""
    with told_why(path):
        try:
            with create_remote(properties, path) as sink:
                sink.write(content)
        except BaseException:
            # Each by itself: where it can't be read, nobody knows what lies there.
            with contextlib.suppress(OSError):
                _delete_half(properties, path, content)
            raise


def _delete_half(properties: Properties, path: str, content: bytes) -> None:
    """Delete what lies there if it is a beginning of the content: who could not write to the end has left it."""
    with open_remote(properties, path) as source:
        there = bytes(source.read(len(content) + 1))
    if len(there) < len(content) and content.startswith(there):
        delete_remote(properties, path)


def delete_remote(properties: Properties, path: str) -> None:
    """Delete a file of another store than S3; FileNotFoundError if it is gone, of stores that say so."""
    filesystem, inner = _filesystem_of(properties, path)
    filesystem.delete_file(inner)


def remote_exists(properties: Properties, path: str) -> bool:
    """Whether a file is there now."""
    reads = _trusted_reads(path, "looked for")
    if reads:
        return bool(reads.object_exists(properties, path))
    filesystem, inner = _filesystem_of(properties, path)
    return bool(filesystem.get_file_info(inner).is_file)


def list_remote(properties: Properties, folder: str) -> Iterator[StoredFile]:
    """All files below a folder, which has no slash at its end; nothing if it does not exist."""
    reads = _trusted_reads(folder, "listed")
    if reads:
        yield from reads.objects_below(properties, folder)
        return
    import pyarrow.fs as pafs  # noqa: PLC0415  # not on the way of a local path

    filesystem, inner = _filesystem_of(properties, folder)
    try:
        found = filesystem.get_file_info(pafs.FileSelector(inner, allow_not_found=True, recursive=True))
    except OSError as error:
        raise refused_listing(error, folder) or error from error
    for info in found:
        if info.is_file:
            yield StoredFile(folder + info.path[len(inner) :], info.size, (info.mtime_ns or 0) // _NS_PER_MS)


@contextlib.contextmanager
def told_why(path: str) -> Iterator[None]:
    """Write a file; what an object store refuses for good says so.

    Raises:
        StoreRefused: with the path.
    """
    try:
        yield
    except OSError as error:
        refusal = refused_upload(error, path)
        if refusal:
            raise refusal from error
        raise


def _object_reads(path: str) -> ModuleType | None:
    """What reads objects of S3; null for another path, and where boto3 is missing."""
    if not path.startswith(S3):
        return None
    try:
        from keptlog.table.io import object_reads  # noqa: PLC0415  # boto3 is an extra
    except ModuleNotFoundError:
        return None
    return object_reads


def _trusted_reads(path: str, done: str) -> ModuleType | None:
    """The same for what follows from an answer alone, such as that nothing is there; null for another path.

    Raises:
        StoreRefused: boto3 is missing.
    """
    reads = _object_reads(path)
    if reads is None and path.startswith(S3):
        raise StoreRefused(f"{path} can't be {done}", "NoBoto3")
    return reads


def _filesystem_of(properties: Properties, path: str) -> tuple[pafs.FileSystem, str]:
    properties = client_properties(properties, path) if path.startswith(S3) else _of_storage(properties, path)
    scheme, authority, inner = parts_of(path)
    return _filesystem(properties, scheme, authority), inner


def _of_storage(properties: Properties, path: str) -> Properties:
    """What of a catalog's properties is not about storage may be nested, as ``auth`` is, and is no key of a cache."""
    return storage_properties(for_path(properties, path))


@lru_cache(maxsize=16)
def _filesystem(properties: Properties, scheme: str, authority: str) -> pafs.FileSystem:
    from keptlog.table.io.s3_filesystem import PatientFileIO  # noqa: PLC0415  # as above

    return PatientFileIO(dict(properties)).fs_by_scheme(scheme, authority)
