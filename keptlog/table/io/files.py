"""Storage by path, for driver and executors alike.

A local path is opened by the operating system, so that a task on an executor needs no catalog library, and who looks
at small files alone no Arrow. Whatever else the catalog's warehouse lies on is opened through PyIceberg's own
filesystems, configured by the catalog's properties.

A local file is durable once it is closed: the file and its folder are fsynced, because the catalog's database is, and
after a power loss a committed snapshot must not name files that never reached the disk. A disk takes as long for one
fsync as for several at once, so a task, which writes many files, has them go on while it works and waits at its end.

On S3 two clients share the work. Arrow's writes, and reads what is large (``s3_filesystem``). boto3 lists, reads and
writes what is small in one request, and says why a store refuses (``object_reads``); and it deletes, because in a
bucket with versions Arrow's client would leave every byte there (``object_versions``). Where the store is another one,
Arrow does it all, versions are not looked at, and whoever asks is told so. Where boto3 is missing, Arrow reads and
writes segments, and all else is refused (``remote_files``).

What takes long is done side by side. A task waits for what it has written at its end alone, like for an fsync; and what
it is about to read is asked for before it comes to it (``read_ahead``).
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from keptlog.extras import missing_extra
from keptlog.folders import folders_below
from keptlog.storage.files import Files, StoredFile
from keptlog.storage.object_version import (
    UPLOAD_IN_PATH,
    VERSION_IN_PATH,
    DeleteRefused,
    ObjectVersion,
    OpenUpload,
    Undeleted,
    Versioning,
    VersionsBelow,
    refused,
)
from keptlog.storage.read_ahead import asked_at_once
from keptlog.storage.refusal import StoreRefused
from keptlog.table.io.local_files import create_local, delete_local, list_local, local_exists, open_local
from keptlog.table.io.read_only import READ_ONLY, read_only, require_writable
from keptlog.table.io.remote_files import (
    S3,
    client_properties,
    create_remote,
    delete_remote,
    list_remote,
    open_remote,
    remote_exists,
    require_known,
    storage_properties,
    told_why,
    write_remote,
)
from keptlog.table.io.vending import only_for
from keptlog.table.waiting.side_by_side import AT_ONCE
from keptlog.whole_file import make_folder, replace_file, sync

if TYPE_CHECKING:
    import pyarrow as pa

    from keptlog.table.io.object_versions import Bucket

Properties = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class TableFiles:
    """The ``Files`` of one catalog; ``properties`` are the catalog's, and may hold credentials."""

    properties: Properties = field(default=(), repr=False)
    needed: tuple[str, ...] | None = field(default=None, repr=False)
    """What tasks get vended credentials for; null for all that is known."""
    _is_durable_later: ClassVar[bool] = False

    def __getstate__(self) -> dict[str, Any]:
        """What goes to tasks: how storage is reached, and nothing of the catalog, whose address may hold a password."""
        others = tuple(each for each in storage_properties(self.properties) if each[0] != READ_ONLY)
        why = read_only(self.properties)
        told = others if why is None else (*others, (READ_ONLY, why))
        return self.__dict__ | {"properties": only_for(told, self.needed)}

    def within(self, paths: Iterable[str]) -> TableFiles:
        """The same files, of which tasks may open only what lies at these paths, or where they lie."""
        return replace(self, needed=tuple(paths))

    @property
    def task_modules(self) -> Sequence[str]:
        """PyIceberg, whose filesystems open whatever is not on a local disk."""
        warehouse = str(dict(self.properties).get("warehouse", ""))
        told = {name for name, _ in storage_properties(self.properties)} - {READ_ONLY}
        is_remote = bool(told) or local_path(warehouse) is None
        return ("pyiceberg",) if is_remote else ()

    def open_input(self, path: str, size_bytes: int | None = None) -> pa.NativeFile:
        """Open a file for random reads, or a version of it by ``ObjectVersion.location``.

        ``size_bytes`` is how long it should be, where that is known.

        Raises:
            FileNotFoundError: it is gone.
            ModuleNotFoundError: it is a version, or its path ends in a slash, and boto3 is missing.
            OSError: the store does not give it.
        """
        if path.startswith(S3) and VERSION_IN_PATH in path:
            path, _, version_id = path.rpartition(VERSION_IN_PATH)
            return self._bucket(path).open(path, version_id)
        if path.startswith(S3) and path.endswith("/"):
            # Arrow would look for the object without the slash.
            return self._bucket(path).open(path)
        local = local_path(path)
        if local is not None:
            return open_local(local, "rb")
        return open_remote(self.properties, path, size_bytes)

    @contextlib.contextmanager
    def read_ahead(self, inputs: Sequence[tuple[str, int]]) -> Iterator[Files]:
        """The same files; of these (path, size in bytes) the small ones of an object store are asked for at once."""
        remote = [each for each in inputs if local_path(each[0]) is None]
        with asked_at_once(self, remote, AT_ONCE) as files:
            yield files

    @contextlib.contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        """Create a file. It exists whole, and durably, once the context is left without an error.

        Raises:
            InvalidConfig: the home is read-only.
            FolderShut: this user may not write to its folder, on a disk.
        """
        require_writable(self.properties)
        local = local_path(path)
        sink = create_remote(self.properties, path) if local is None else create_local(local, self.make_durable)
        try:
            with told_why(path):
                yield sink
                self.finish(sink, path)
        except BaseException:
            self.take_back(sink, path)
            raise

    def finish(self, sink: pa.NativeFile, path: str) -> None:
        """Close a file that was written, and make it durable."""
        sink.close()
        local = local_path(path)
        if local is not None:
            self.make_durable(Path(local))
            self.make_durable(Path(local).parent)

    def take_back(self, sink: pa.NativeFile, path: str) -> None:
        """Leave nothing of a file that could not be written to its end, as far as the storage lets."""
        # Each by itself: on a full disk to close fails too.
        with contextlib.suppress(OSError):
            sink.close()
        with contextlib.suppress(OSError):
            self.delete(path)
            bucket = self._deleting(path)
            if bucket:
                # Arrow gives an upload up only by completing it. No other one has this path (I2).
                bucket.abort_all(path)

    @contextlib.contextmanager
    def durable_at_end(self) -> Iterator[TableFiles]:
        """The same files; what is created through them is durable once the context is left without an error."""
        from keptlog.table.io.durable_at_end import DurableAtEnd  # noqa: PLC0415  # it is one of these itself

        with ThreadPoolExecutor(AT_ONCE) as pool:
            files = DurableAtEnd(self.properties, pool=pool)
            yield files
            files.wait()

    def delete(self, path: str) -> None:
        """Delete a file, with all its versions, or an upload of it (``OpenUpload.location``).

        What is already gone is no error.

        Raises:
            InvalidConfig: the home is read-only.
            DeleteRefused: a version of it may not be deleted; says until when, or who must act.
            OSError: it is a link, or the store does not answer.
        """
        require_writable(self.properties)
        if path.startswith(S3) and UPLOAD_IN_PATH in path:
            of, _, upload_id = path.rpartition(UPLOAD_IN_PATH)
            if self._bucket(path).abort(of, upload_id):
                return
            # An object's key may look like that too.
        bucket = self._deleting(path)
        if bucket:
            left = bucket.delete([path])
            if left:
                raise DeleteRefused(left)
            return
        local = local_path(path)
        if local is not None:
            delete_local(local)
            return
        with contextlib.suppress(FileNotFoundError):
            delete_remote(self.properties, path)

    def delete_many(self, paths: Iterable[str]) -> tuple[Undeleted, ...]:
        """Delete files with all their versions; gives what is still there, and why, instead of raising it.

        Raises:
            InvalidConfig: the home is read-only.
            OSError: an object store does not answer.
        """
        left: list[Undeleted] = []
        for bucket, theirs in self._by_bucket(paths):
            require_writable(self.properties)
            at_once = [path for path in theirs if bucket and UPLOAD_IN_PATH not in path]
            left += bucket.delete(at_once) if bucket else []
            for path in set(theirs).difference(at_once):
                try:
                    self.delete(path)
                except DeleteRefused as error:
                    left += error.undeleted
                except OSError as error:
                    is_upload = bucket is not None and UPLOAD_IN_PATH in path  # an object is told by ``DeleteRefused``
                    said = f"{type(error).__name__}: {error}"
                    left.append(refused(path, None, 0, said, is_upload=is_upload))
        return tuple(left)

    def still_there(self, paths: Iterable[str]) -> tuple[Undeleted, ...]:
        """Look again, after a delete: which files, or versions of them, are still there, and why."""
        left: list[Undeleted] = []
        for bucket, theirs in self._by_bucket(paths):
            if bucket and bucket.versioning[0] != Versioning.NONE:
                left += bucket.still_there(theirs)
            else:
                left += [refused(path, None, 0, None) for path in theirs if self.exists(path)]
        return tuple(left)

    def may_lock(self, path: str) -> bool:
        """Whether the store of a path can lock files: only versions can be locked."""
        bucket = self._versioned(path)
        return bucket is not None and bucket.versioning[0] != Versioning.NONE

    def versions_below(self, folder: str, *, is_proof: bool = False) -> VersionsBelow:
        """What lies below a folder without being a current object: noncurrent versions and delete markers.

        For a proof the bucket is asked again whether it keeps any.

        Raises:
            OSError: the store does not answer, or does not allow it.
        """
        if is_proof and (asked := self._deleting(folder)):
            asked.ask_again()
        bucket = self._versioned(folder)
        return bucket.below(folder) if bucket else VersionsBelow(not_looked_at=self._not_looked_at(folder))

    def delete_versions(self, versions: Sequence[ObjectVersion]) -> tuple[Undeleted, ...]:
        """Delete versions, of one bucket, for good; gives those that are still there.

        Raises:
            InvalidConfig: the home is read-only.
            OSError: the store does not answer.
        """
        require_writable(self.properties)
        return tuple(self._bucket(versions[0].path).delete_versions(versions)) if versions else ()

    def why_kept(self, version: ObjectVersion) -> tuple[Undeleted, ...]:
        """Whether object lock or a legal hold keeps a version: a request, so only for those that should be gone."""
        return tuple(self._bucket(version.path).why_kept(version))

    def uploads_below(self, folder: str) -> tuple[OpenUpload, ...]:
        """Multipart uploads below a folder that were never completed; nothing where there is no such thing.

        Raises:
            OSError: the store does not answer, or does not allow it.
        """
        bucket = self._versioned(folder)
        return tuple(bucket.uploads_below(folder)) if bucket else ()

    def why_uploads_stay(self, folder: str) -> str | None:
        """Why multipart uploads that nobody completes may stay below a folder for ever; null if they don't.

        Raises:
            ModuleNotFoundError: boto3 is missing.
            OSError: the store does not answer, or does not allow it.
        """
        return self._bucket(folder).why_uploads_stay(folder) if folder.startswith(S3) else None

    def make_deletions_durable(self, folder: str) -> None:
        """Wait until what was deleted below a folder stays gone in a power loss; a deletion alone may be taken back."""
        local = local_path(folder)
        for parent, _ in folders_below(local) if local is not None else ():
            with contextlib.suppress(FileNotFoundError):
                self.make_durable(Path(parent))

    def exists(self, path: str) -> bool:
        """Whether a file is there now; OSError if that can't be told."""
        local = local_path(path)
        return remote_exists(self.properties, path) if local is None else local_exists(local)

    def require_client(self, path: str) -> None:
        """Refuse a path of a store that is not known here; S3 always is. Whether it can be reached is not asked.

        Raises:
            NoStoreClient: no client can be made for its store.
        """
        if local_path(path) is None and not path.startswith(S3):
            with contextlib.suppress(OSError):
                require_known(self.properties, path)

    def missing(self, paths: Sequence[str]) -> list[str]:
        """Which of these files are not there now, in their order; an object store is asked side by side."""
        if len(paths) < 2 or all(local_path(path) is not None for path in paths):
            return [path for path in paths if not self.exists(path)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return [path for path, is_there in zip(paths, pool.map(self.exists, paths), strict=True) if not is_there]

    def list(self, folder: str) -> Iterator[StoredFile]:
        """All files below a folder, none if it does not exist; OSError if it, or one below it, can't be listed."""
        folder = folder.rstrip("/")
        local = local_path(folder)
        yield from list_remote(self.properties, folder) if local is None else list_local(folder, local)

    def read_bytes(self, path: str) -> bytes:
        """The whole of a small file; FileNotFoundError if it is gone."""
        with self.open_input(path) as source:
            return bytes(source.read())

    def write_bytes(self, path: str, content: bytes) -> None:
        """Create a small file, durably; who is killed leaves it whole or not at all, but for ``durable_at_end``.

        Raises:
            InvalidConfig: the home is read-only.
        """
        require_writable(self.properties)
        local = local_path(path)
        if local is None or self._is_durable_later:
            if local is None and write_remote(self.properties, path, content, is_whole_now=not self._is_durable_later):
                return
            # Nobody refers to it before it is durable, so half of it does no harm.
            with self.open_output(path) as sink:
                sink.write(content)
            return
        make_folder(Path(local).parent)
        replace_file(Path(local), content)

    def make_durable(self, path: Path) -> None:
        sync(path)

    def _not_looked_at(self, path: str) -> str | None:
        """Why nobody knows what versions there are; null if it is known, or will be."""
        scheme = path.partition("://")[0]
        if local_path(path) is not None:
            return None
        if not path.startswith(S3):
            return f"versions and open uploads of this store ({scheme}) are not looked at"
        try:
            return self._bucket(path).versioning[1] or None
        except ModuleNotFoundError as error:
            return f"versions and open uploads of {path} are not looked at: {missing_extra(error) or error}"

    def _by_bucket(self, paths: Iterable[str]) -> Iterator[tuple[Bucket | None, Sequence[str]]]:
        """Paths by the bucket to be asked about them; null for those that are somewhere else."""
        by_place: dict[tuple[str, Properties] | None, list[str]] = defaultdict(list)
        for path in paths:
            place = "/".join(path.split("/")[:3])
            by_place[(place, client_properties(self.properties, path)) if path.startswith(S3) else None].append(path)
        for at, theirs in by_place.items():
            yield (self._versioned(theirs[0]) if at else None), theirs

    def _versioned(self, path: str) -> Bucket | None:
        """The bucket of a path, if its versions are known."""
        return self._bucket(path) if path.startswith(S3) and not self._not_looked_at(path) else None

    def _deleting(self, path: str) -> Bucket | None:
        """The bucket of a path, also of one that does not say whether it has versions; StoreRefused without boto3."""
        try:
            return self._bucket(path) if path.startswith(S3) else None
        except ModuleNotFoundError:
            raise StoreRefused(f"{path} can't be deleted", "NoBoto3") from None

    def _bucket(self, path: str) -> Bucket:
        from keptlog.table.io.object_versions import bucket_of  # noqa: PLC0415  # boto3 is an extra

        return bucket_of(self.properties, path)


def local_path(path: str) -> str | None:
    """The operating system's path of a local location (``/…``, ``file:/…`` or ``file:///…``), null for any other.

    Taken as it is, not as a URL: a folder may be called ``50%`` or ``a#b``.
    """
    if path.startswith("file://"):
        return path.removeprefix("file://")
    if path.startswith("file:"):
        return path.removeprefix("file:")
    return None if "://" in path else path
