"""Holds what a command printed with ``--json`` against the form that ``keptlog.cli.answers`` declares.

Every test that runs a command with ``--json`` through the fixture ``keptlog`` does this by the way.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Sequence
from functools import cache
from typing import Any, is_typeddict

import jsonschema

from keptlog.cli.answers import ANSWERS, NO_DOCUMENT, DocumentForm

_PLAIN: dict[Any, dict[str, Any]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    types.NoneType: {"type": "null"},
    Any: {},
}


def command_of(arguments: Sequence[str]) -> str | None:
    """The command that arguments are for, if it has a form."""
    return next((name for name in (" ".join(arguments[:2]), " ".join(arguments[:1])) if name in ANSWERS), None)


def check_answer(arguments: Sequence[str], printed: str, document: Any) -> None:
    """Refuse a document that has not the form of its command; a field that nobody has declared is refused too."""
    command = command_of(arguments)
    if command is None:
        assert any(" ".join(arguments).startswith(name) for name in NO_DOCUMENT), f"{arguments} has no form"
        return
    is_error_alone = document.keys() == {"schema_version", "errors"}
    forms = [DocumentForm] if is_error_alone else [*ANSWERS[command]]
    problems = [_problem(form, document) for form in forms]
    assert None in problems, f"{command} --json: {problems[0]}\n{printed}"


def _problem(form: Any, document: Any) -> str | None:
    error = jsonschema.exceptions.best_match(_validator(form).iter_errors(document))
    return None if error is None else f"{error.json_path}: {error.message}"


@cache
def _validator(form: Any) -> jsonschema.Draft202012Validator:
    of_document, of_form = _schema(DocumentForm), _schema(form)
    properties = of_document["properties"] | of_form["properties"]
    required = {*of_document["required"], *of_form["required"]}
    return jsonschema.Draft202012Validator(of_form | {"properties": properties, "required": sorted(required)})


def _schema(hint: Any) -> dict[str, Any]:
    if is_typeddict(hint):
        fields = typing.get_type_hints(hint)
        properties = {name: _schema(each) for name, each in fields.items()}
        return {"type": "object", "properties": properties, "required": [*fields], "additionalProperties": False}
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is list:
        return {"type": "array", "items": _schema(parts[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(parts[1])}
    assert origin in {types.UnionType, typing.Union}, f"{hint} is in no form"
    return {"anyOf": [_schema(part) for part in parts]}
