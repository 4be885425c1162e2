"""A catalog that is not the home's own takes in what the storage has of a topic, as far as its kind can do that."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import event

from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.table.chain.sealed_receipts import CHAIN
from keptlog.table.namespaces import RECEIPTS
from keptlog.table.registrar import Registrar
from tests.table.receipt_chains import chain_over, draft, ids, require_sound
from tests.table.rest_server import catalog_of
from tests.table.stores import COMPACTED, TOPIC, append_each, store_over


def test_a_database_takes_in_the_newest_state_of_a_topic_that_it_lost_or_knows_an_older_one_of(tmp_path: Path) -> None:
    def opened() -> SqlCatalog:
        where = {"uri": f"sqlite:///{tmp_path}/lake.db", "warehouse": f"file://{tmp_path}/lake"}
        return SqlCatalog("keptlog", **where)

    store = store_over(opened())
    store.create_topic(TOPIC, 1, COMPACTED)
    shutil.copy(tmp_path / "lake.db", tmp_path / "old.db")
    append_each(store, [("ann", "1")], [("bob", "1")])
    newest = store.load_table(TOPIC).metadata_location
    opened().drop_table(("keptlog", TOPIC))
    for before in (None, tmp_path / "old.db"):
        if before:
            shutil.copy(before, tmp_path / "lake.db")
        registrar = Registrar(store_over(opened()))
        proposal = registrar.propose(TOPIC)
        assert proposal is not None
        registrar.register(proposal)
        assert store_over(opened()).load_table(TOPIC).metadata_location == newest


def test_a_catalog_behind_rest_takes_no_other_state_of_a_topic_that_it_knows_and_says_what_to_do(
    tmp_path: Path,
) -> None:
    with catalog_of("rest", tmp_path) as catalog:
        store = store_over(catalog)
        store.create_topic(TOPIC, 1, COMPACTED)
        append_each(store, [("ann", "1")], [("bob", "1")])
        assert Registrar(store).propose(TOPIC) is None
        first = next(tmp_path.rglob("00001-*.metadata.json"))
        # The proposal says so already: what --dry-run promises is done without it.
        with pytest.raises(InvalidConfig, match=rf"catalog\.drop_table\(\('keptlog', '{TOPIC}'\)\)") as refused:
            Registrar(store).propose(TOPIC, first.name)
        catalog.drop_table(("keptlog", TOPIC))
        with pytest.raises(InvalidConfig, match="only its server knows where"):
            Registrar(store).propose(TOPIC)
        told = str(refused.value).rpartition("--metadata ")[2]
        again = Registrar(store).propose(TOPIC, told)
        assert again is not None
        assert again.before is None


def test_a_database_that_was_lost_whole_begins_anew_and_only_then(tmp_path: Path) -> None:
    where = {"uri": f"sqlite:///{tmp_path}/lake.db", "warehouse": f"file://{tmp_path}/lake"}
    store = store_over(SqlCatalog("keptlog", **where))
    store.create_topic(TOPIC, 1, COMPACTED)
    append_each(store, [("ann", "1")])
    newest = store.load_table(TOPIC).metadata_location
    with pytest.raises(InvalidConfig, match="has not lost its topics"):
        Registrar(store).begin_anew()
    (tmp_path / "lake.db").unlink()
    registrar = Registrar(store_over(SqlCatalog("keptlog", **where)))
    with pytest.raises(StorageUnavailable, match="keptlog topic register TOPIC --new-catalog"):
        registrar.propose(TOPIC)
    registrar.begin_anew()
    proposal = registrar.propose(TOPIC)
    assert proposal is not None
    registrar.register(proposal)
    assert store_over(SqlCatalog("keptlog", **where)).load_table(TOPIC).metadata_location == newest


def test_who_makes_the_namespace_at_once_with_another_goes_on_in_it(tmp_path: Path) -> None:
    def opened() -> SqlCatalog:
        return SqlCatalog("keptlog", uri=f"sqlite:///{tmp_path}/lake.db", warehouse=f"file://{tmp_path}/lake")

    catalog, faster = opened(), [opened()]

    def before(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if faster and "INSERT INTO iceberg_namespace_properties" in statement:
            faster.pop().create_namespace("keptlog")

    event.listen(catalog.engine, "before_cursor_execute", before)
    store_over(catalog).create_topic(TOPIC, 1, COMPACTED)
    assert not faster
    assert store_over(opened()).topics() == [TOPIC]


def test_a_catalog_behind_rest_that_knows_older_receipts_takes_the_newer_ones_as_it_is_told(tmp_path: Path) -> None:
    """To take the chain out and repeat the command found none: --metadata is of a topic, and the place is not known."""
    with catalog_of("rest", tmp_path) as catalog:
        store = store_over(catalog)
        store.create_topic(TOPIC, 1, COMPACTED)
        for number in range(3):
            chain_over(catalog).append([draft(number)])
        chain = (RECEIPTS, CHAIN)
        older = next(tmp_path.rglob("chain/metadata/00002-*.metadata.json"))
        catalog.drop_table(chain)
        catalog.register_table(chain, f"file://{older}")
        with pytest.raises(InvalidConfig, match="can't take another state of one in one step") as refused:
            Registrar(store).propose_receipts()
        newest = next(tmp_path.rglob("chain/metadata/00003-*.metadata.json"))
        assert f"catalog.register_table({chain!r}, 'file://{newest}')" in str(refused.value)
        assert "--metadata" not in str(refused.value)
        catalog.drop_table(chain)
        assert Registrar(store).propose_receipts() is None
        catalog.register_table(chain, f"file://{newest}")
        assert Registrar(store).propose_receipts() is None
        require_sound(chain_over(catalog))
        assert len(ids(chain_over(catalog))) == 3
