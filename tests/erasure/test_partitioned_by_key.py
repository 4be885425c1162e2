"""Another program has partitioned a topic by key for a while: manifests and their lists have values of keys in them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote_plus

from pyiceberg.table.update import SetDefaultSpecUpdate

from keptlog.log.record import Record
from keptlog.storage.schema import to_arrow
from tests.erasure.byte_search import files_with
from tests.erasure.world import DAY_MS, KEY, OTHER, VALUE, World
from tests.table.foreign import set_main, table_of


def test_a_request_is_not_verified_before_what_was_partitioned_by_its_key_is_gone(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
    partitioned_by_key(world)
    metadata = [path for path in files_with([tmp_path], [KEY]) if path.suffix == ".avro"]
    for path in files_with([tmp_path], [KEY, VALUE]):
        if path not in metadata:
            path.unlink()
    row = world.verified()
    assert row.erasure.is_open
    assert {path for path in metadata if any(str(path) in text for text in row.blocked)} == {*metadata}
    assert len(metadata) == 2, "the manifest and the list"
    world.later(2 * DAY_MS)
    world.purge()
    assert not any(path.exists() for path in metadata)
    assert world.verified().erasure.state == "verified"


def test_no_empty_folder_keeps_the_name_that_a_key_has_given_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    partitioned_by_key(world)
    (folder,) = tmp_path.rglob(f"key={quote_plus(b64encode(KEY))}")
    (file,) = folder.iterdir()
    beside = folder / "of-another-program"
    beside.touch()
    world.store.files.delete(str(file))
    assert (file.exists(), beside.exists()) == (False, True)
    beside.unlink()
    world.later(2 * DAY_MS)
    world.purge()
    assert not folder.exists()
    assert folder.parent.exists()


def test_a_request_is_not_verified_while_a_summary_in_old_metadata_names_a_partition_of_its_key(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
    partitioned_by_key(world, {"write.summary.partition-limit": "100"})
    world.later(2 * DAY_MS)
    world.purge()
    in_base64 = quote_plus(b64encode(KEY)).encode()
    naming = [path for path in files_with([tmp_path], [in_base64]) if path.name.endswith(".metadata.json")]
    assert naming
    row = world.verified()
    assert row.erasure.is_open
    assert {path for path in naming if any(str(path) in text for text in row.blocked)} == set(naming)
    for path in naming:
        path.unlink()
    assert world.verified().erasure.state == "verified"


def test_summaries_that_name_partitions_of_other_keys_keep_no_request_open(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
    partitioned_by_key(world, {"write.summary.partition-limit": "100"}, OTHER)
    world.later(2 * DAY_MS)
    world.purge()
    assert world.verified().erasure.state == "verified"


def partitioned_by_key(world: World, properties: Mapping[str, str] | None = None, key: bytes = KEY) -> None:
    """A commit of another program, which is taken back."""
    table = table_of(world.home, "users")
    if properties:
        table.transaction().set_properties(dict(properties)).commit_transaction()
        table = table_of(world.home, "users")
    before = table.metadata.current_snapshot_id
    assert before is not None
    with table.update_spec() as spec:
        spec.add_identity("key")
    table_of(world.home, "users").append(to_arrow(0, [Record(0, key, VALUE, 1)]))
    set_main(world.home, before, "users")
    table = table_of(world.home, "users")
    table.catalog.commit_table(table, (), (SetDefaultSpecUpdate.model_validate({"spec-id": 0}),))
