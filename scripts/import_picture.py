"""Draws what imports what: the folders of ``keptlog`` as boxes, a row for each layer, an arrow where one uses another.

    python scripts/import_picture.py      writes docs/images/imports.svg

The rows are those of the import contract in pyproject.toml. An arrow that a longer way implies is left out, and so are
those to the ground on which all stand. An arrow that does not go down is drawn in red; ``lint-imports`` allows none.
The tests compare the picture with the code.
"""

from __future__ import annotations

from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "imports.svg"
ROWS: tuple[tuple[str, ...], ...] = (
    ("", "dagster.orchestration"),
    ("cli", "dagster.assets"),
    ("", "dagster.resources"),
    ("home",),
    ("passes", "ingest"),
    ("sinks", "table", "spark", "sources"),
    ("", "", "engine", ""),
    ("kafka_client", "", "kernels", ""),
    ("", "", "storage", ""),
)
GROUND = ("log", "settings", "errors", "progress", "extras", "folders", "whole_file")
WIDTH, BOX_WIDTH, BOX_HEIGHT, ROW_HEIGHT, TOP = 960, 190, 34, 74, 20


def folder_of(module: str) -> str:
    """The box that a module belongs to; empty for the package itself."""
    parts = module.split(".")[1:]
    return ".".join(parts[:2]) if parts[:1] == ["dagster"] else ".".join(parts[:1])


def imports_between_folders() -> set[tuple[str, str]]:
    """Pairs of boxes of which the first imports the second, the ground left out."""
    graph = grimp.build_graph("keptlog", cache_dir=None)
    boxes = {name for row in ROWS for name in row if name}
    pairs = {
        (folder_of(module), folder_of(imported))
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    }
    return {(one, other) for one, other in pairs if one != other and {one, other} <= boxes}


def without_implied(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The pairs that no longer way implies."""

    def reaches(start: str, end: str, left_out: tuple[str, str]) -> bool:
        seen, waiting = {start}, [start]
        while waiting:
            here = waiting.pop()
            following = {other for one, other in pairs - {left_out} if one == here} - seen
            seen |= following
            waiting += following
        return end in seen

    return {pair for pair in pairs if not reaches(*pair, pair)}


def places() -> dict[str, tuple[int, int]]:
    """Box to the middle of its upper edge."""
    found = {}
    for number, row in enumerate(ROWS):
        for column, name in enumerate(row):
            if name:
                found[name] = (WIDTH * (2 * column + 1) // (2 * len(row)), TOP + number * ROW_HEIGHT)
    return found


def drawn() -> str:
    """The picture as SVG."""
    at = places()
    lines = []
    for one, other in sorted(without_implied(imports_between_folders())):
        (x1, y1), (x2, y2) = at[one], at[other]
        is_down = y2 > y1
        start, end = (y1 + BOX_HEIGHT, y2 - 3) if is_down else (y1, y2 + BOX_HEIGHT)
        bend = max((end - start) // 2, 20)
        color = "#8a94a6" if is_down else "#d33"
        lines.append(
            f'<path d="M{x1},{start} C{x1},{start + bend} {x2},{end - bend} {x2},{end}" fill="none" stroke="{color}" '
            'stroke-width="1.4" marker-end="url(#tip)"/>'
        )
    for name, (x, y) in at.items():
        lines.append(_box(x - BOX_WIDTH // 2, y, BOX_WIDTH, name, "#eef3fb"))
    ground = TOP + len(ROWS) * ROW_HEIGHT
    share = (WIDTH - 40) // len(GROUND)
    lines += [_box(20 + share * number, ground, share - 8, name, "#f4efe4") for number, name in enumerate(GROUND)]
    height = ground + BOX_HEIGHT + TOP
    return "\n".join([_HEAD.format(width=WIDTH, height=height), *lines, "</svg>", ""])


_HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="14">\n'
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0,0 L8,4 L0,8 z" fill="#8a94a6"/></marker></defs>\n'
    '<rect width="{width}" height="{height}" fill="#fff"/>'
)


def _box(x: int, y: int, width: int, name: str, color: str) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{BOX_HEIGHT}" rx="6" fill="{color}" stroke="#5b6b84"/>'
        f'<text x="{x + width // 2}" y="{y + 22}" text-anchor="middle">{name.replace(".", "/")}</text>'
    )


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
