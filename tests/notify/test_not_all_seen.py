"""A dry run that could not look at everything does not end as if all were well."""

from __future__ import annotations

from tests.notify.conftest import Scene


def test_what_could_not_be_looked_at_is_neither_fine_nor_wrong(scene: Scene) -> None:
    scene.topic()
    path = scene.home / "notify" / "checks.json"
    path.parent.mkdir()
    path.write_text('{"users-0"')
    shown = scene.notify("--dry-run")
    assert shown.code == 1
    assert shown.err.startswith(f"keptlog: {path}: it is damaged; delete it")
    assert "not all could be looked at: whether something is wrong there is not known" in shown.out
    as_json = scene.notify("--dry-run", "--json")
    assert (as_json.code, as_json.json["conditions"]) == (1, [])
    [why] = as_json.json["not_looked_at"]
    assert why.startswith(f"{path}: it is damaged")
    path.unlink()
    whole = scene.notify("--dry-run", "--json")
    assert (whole.code, whole.json["not_looked_at"]) == (0, [])


def test_where_no_catalog_is_nothing_is_known_of_the_logs(scene: Scene) -> None:
    shown = scene.notify("--dry-run", "--json")
    assert shown.code == 1
    [why] = shown.json["not_looked_at"]
    assert why.startswith("nothing is known of the logs: ")
