"""How the cost of a clean grows, as text: for each table its rows, and a bar for what each record or log costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.bars import bars
from benchmarks.figures import KEPTLOG
from benchmarks.machine import as_facts
from benchmarks.markdown import table_row

_MEBIBYTE = 2**20


def growth_as_text(result: Mapping[str, Any]) -> str:
    """The section of ``RESULTS.md``; from what ``growth`` measured."""
    lines = [
        "## Growth: what a clean costs as its work grows",
        "",
        '"Each further" is what the work that the row above has not costs, in CPU seconds a million records or CPU ms '
        "a topic-partition: where it rises from row to row, the cost grows faster than the work.",
    ]
    for table in result["tables"]:
        lines += ["", *_table(table)]
    return "\n".join(lines) + "\n"


def _table(table: Mapping[str, Any]) -> Iterable[str]:
    per = "cpu_ms_per_partition" if table["is_by_partition"] else "cpu_s_per_million"
    unit = "CPU ms a topic-partition" if table["is_by_partition"] else "CPU s a million records"
    yield from (
        f"### {table['title']}",
        "",
        f"{table['rounds']} rounds; " + ", ".join(as_facts(table["on"])),
        "",
        f"| topic-partitions | records | wall s | CPU s | {unit} | each further | floor s | floor CPU s | peak MiB |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    )
    above: Mapping[str, Any] | None = None
    for row in table["rows"]:
        wall_s, cpu_s, peak_bytes = row["wall_s"], row["cpu_s"], row["peak_rss_bytes"]
        cells = [
            f"{row['partitions']:,}",
            f"{row['records']:,}",
            f"{wall_s[KEPTLOG]:.2f}",
            f"{cpu_s[KEPTLOG]:.2f}",
            f"{row[per]:.2f}",
            _each_further(above, row) if above else "",
            f"{wall_s['floor']:.2f}",
            f"{cpu_s['floor']:.2f}",
            f"{peak_bytes[KEPTLOG] / _MEBIBYTE:.0f}",
        ]
        yield table_row(cells)
        above = row
    yield from ("", f"{unit}:", "", "```")
    of = "partitions" if table["name"] != "records" else "records"
    yield from bars({f"{row[of]:,}": row[per] for row in table["rows"]}, "ms" if table["is_by_partition"] else "s")
    yield "```"


def _each_further(above: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    cpu_s = row["cpu_s"][KEPTLOG] - above["cpu_s"][KEPTLOG]
    if partitions := row["partitions"] - above["partitions"]:
        return f"{cpu_s * 1_000 / partitions:.2f} ms"
    return f"{cpu_s * 1_000_000 / (row['records'] - above['records']):.2f} s"
