"""What Dagster takes for Markdown is shown as it was meant: a command that somebody copies is the command."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from keptlog.dagster.assets.markdown import as_markdown, to_the_minute, without_folders, without_paths


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ALTER TABLE <catalog>.keptlog.`users`", r"ALTER TABLE \<catalog>.keptlog.\`users\`"),
        ("tag audit_2026 of a-b.c", "tag audit_2026 of a-b.c"),
        ("topic _internal_ and __offsets", r"topic \_internal\_ and \_\_offsets"),
        ("*.parquet [1] ~~ a|b C:\\x", r"\*.parquet \[1] \~\~ a\|b C:\\x"),
        ("first line\n   second", "first line second"),
    ],
)
def test_what_markdown_would_take_for_its_own_has_a_backslash(text: str, shown: str) -> None:
    assert as_markdown(text) == shown


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (f"s3://lake/users/data/partition=0/{12:020d}-run-{'f' * 32}.parquet", f"…/{12:020d}-…ffff.parquet"),
        (f"s3://lake/users/data/partition=0/{12:020d}-run-{'f' * 32}-copy.parquet", f"…/{12:020d}-…copy.parquet"),
        ("/srv/home/users/data/other.parquet", "…/other.parquet"),
        ("s3://lake/users/watermarks/partition=0/marks-1.arrow", "…/marks-1.arrow"),
        ("s3://lake/users/metadata/snap-1.avro", "…/snap-1.avro"),
        ("s3://lake/users/metadata/00012-a.metadata.json", "…/00012-a.metadata.json"),
        ("/srv/home/exports/users.jsonl", "/srv/home/exports/users.jsonl"),
        ("keptlog/receipts/3.json", "keptlog/receipts/3.json"),
    ],
)
def test_of_a_path_in_a_table_there_is_what_tells_the_file_from_others_of_its_log(path: str, told: str) -> None:
    assert without_paths(f"{path} has 4 bytes; and {path} too") == f"{told} has 4 bytes; and {told} too"


@pytest.mark.parametrize("shortened", [without_folders, without_paths])
@pytest.mark.parametrize("end", ["parquet", "arrow", "avro", "metadata.json"])
def test_a_path_as_wide_as_a_window_is_none_in_a_page_whatever_file_it_names(
    shortened: Callable[[str], str], end: str
) -> None:
    path = f"s3://{'/'.join(['acme-data-lake-production'] * 8)}/file-1.{end}"
    assert shortened(f"{path} is missing") == f"…/file-1.{end} is missing"
    assert shortened(f"retired files ({path}, {path})") == f"retired files (…/file-1.{end}, …/file-1.{end})"
    assert shortened(f"'{path}' and [\"{path}\"]") == f"'…/file-1.{end}' and [\"…/file-1.{end}\"]"


def test_a_long_word_that_names_no_file_is_read_once() -> None:
    """28 seconds of a page for 32 kB of it."""
    for word in ("a/" * 50_000, '"a/b/c/' * 15_000, "(a/" * 30_000, "'a/'" * 30_000, '["s3://b/a/c/d.txt",' * 5_000):
        assert without_folders(word) == without_paths(word) == word
    files = '["s3://b/a/c/d.json",' * 5_000
    assert without_folders(files) == without_paths(files) == '["…/d.json",' * 5_000


@pytest.mark.parametrize("shortened", [without_folders, without_paths])
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("(s3://b/c/d/e.parquet,s3://b/c/d/f.parquet)", "(…/e.parquet,…/f.parquet)"),
        ("['s3://b/c/d/e.arrow','s3://b/c/d/f.arrow']", "['…/e.arrow','…/f.arrow']"),
        ('{"a":"s3://b/c/d.txt","e":"s3://b/c/d/f.avro"}', '{"a":"s3://b/c/d.txt","e":"…/f.avro"}'),
        ("at path=/a/b/c/d.arrow: gone", "at …/d.arrow: gone"),
        ("`/a/b/c/x.avro` <s3://a/b/c/d.json>", "`…/x.avro` <…/d.json>"),
        ("/srv/it's/home/x.parquet", "…/x.parquet"),
        ("/srv/a(b)/[home]/x.parquet", "…/x.parquet"),
    ],
)
def test_of_several_paths_in_a_word_each_file_is_named(shortened: Callable[[str], str], text: str, told: str) -> None:
    """Of two paths with a comma between them the first file was told by nobody."""
    assert shortened(text) == told


def test_a_time_in_a_text_is_told_to_the_minute_and_a_name_that_holds_one_stays() -> None:
    text = "since 2026-11-29T02:49:31.688Z, next 2026-11-29T03:49:31Z: tag at-2026-11-29T02:49:31.688Z"
    assert (
        to_the_minute(text) == "since 2026-11-29 02:49 UTC, next 2026-11-29 03:49 UTC: tag at-2026-11-29T02:49:31.688Z"
    )
