"""Writes the reference in docs/json.md from the forms in ``keptlog.cli.answers``.

It is called by hand, ``python -m scripts.json_reference``, and a test says when.
"""

from __future__ import annotations

import ast
import itertools
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, is_typeddict

from keptlog.cli import answers
from keptlog.cli.answers import ANSWERS, NO_DOCUMENT, WITHOUT_JSON, DocumentForm

PAGE = Path(__file__).parents[1] / "docs" / "json.md"
_MARK = "<!-- from here on written by python -m scripts.json_reference -->"
_NAMES = {int: "integer", float: "number", str: "text", bool: "true or false", types.NoneType: "null", Any: "anything"}


def with_reference(page: str) -> str:
    """The page with its reference written anew."""
    return page.partition(_MARK)[0] + _MARK + "\n\n" + "\n".join(_reference()).rstrip() + "\n"


def _reference() -> Iterator[str]:
    yield from _section("Every document", [DocumentForm])
    for command, forms in ANSWERS.items():
        yield from _section(f"keptlog {command}", forms)
    yield "## Commands with another form\n"
    yield "| command | what `--json` prints |\n|---|---|"
    yield from (f"| `keptlog {command}` | {told} |" for command, told in NO_DOCUMENT.items())
    yield "\n## Commands that print no JSON\n"
    yield "| command | |\n|---|---|"
    yield from (f"| `keptlog {command}` | {why} |" for command, why in WITHOUT_JSON.items())


def _section(title: str, forms: Iterable[Any]) -> Iterator[str]:
    yield f"## {title}\n"
    shown: list[Any] = []
    for form in forms:
        if _doc(form) != f"`{title.removeprefix('keptlog ')}`.":
            yield f"{_doc(form)}\n"
        yield from _table(form, shown)
        while shown:
            part = shown.pop(0)
            yield f"**{_name(part)}**. {_doc(part)}\n"
            yield from _table(part, shown)


def _table(form: Any, parts: list[Any]) -> Iterator[str]:
    """The fields of a form; forms of which it is made are added to ``parts``."""
    notes = _notes(form)
    yield "| field | | |\n|---|---|---|"
    for name, hint in typing.get_type_hints(form).items():
        yield f"| `{name}` | {_told(hint)} | {notes.get(name, '')} |"
        parts += [part for part in _parts(hint) if part not in parts]
    yield ""


def _told(hint: Any) -> str:
    if is_typeddict(hint):
        return _name(hint)
    if hint in _NAMES:
        return _NAMES[hint]
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is list:
        return f"list of {_told(parts[0])}"
    if origin is dict:
        return f"object of {_told(parts[1])}"
    return " or ".join(_told(part) for part in parts)


def _name(form: Any) -> str:
    return str(form.__name__).removesuffix("Form")


def _parts(hint: Any) -> list[Any]:
    if is_typeddict(hint):
        return [hint]
    return [part for each in typing.get_args(hint) for part in _parts(each)]


def _doc(form: Any) -> str:
    """In one line; a form without words of its own has none."""
    doc = form.__dict__.get("__doc__") or ""
    return " ".join(doc.split()) if not doc.startswith("dict(") else ""


def _notes(form: Any) -> dict[str, str]:
    """What stands below each field in the source, also of the form that it goes on from."""
    return _notes_of(form.__name__, _classes())


def _notes_of(name: str, classes: Mapping[str, ast.ClassDef]) -> dict[str, str]:
    notes: dict[str, str] = {}
    body: list[ast.stmt] = []
    if name in classes:
        body = classes[name].body
        for base in classes[name].bases:
            notes |= _notes_of(base.id, classes) if isinstance(base, ast.Name) else {}
    for field, note in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(note, ast.Expr):
            notes[field.target.id] = " ".join(str(ast.literal_eval(note.value)).split())
    return notes


@cache
def _classes() -> Mapping[str, ast.ClassDef]:
    """All forms, as their source has them."""
    parsed = [ast.parse(path.read_text()) for path in Path(answers.__file__).parent.glob("*.py")]
    return {each.name: each for module in parsed for each in module.body if isinstance(each, ast.ClassDef)}


if __name__ == "__main__":
    PAGE.write_text(with_reference(PAGE.read_text()))
