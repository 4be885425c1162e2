"""The reference pages: their tables come from the code, each time the site is made, and can't fall behind it.

A page names what is to stand in its place; here it becomes Markdown, which is read as if it stood there:

    ```{commands}
    ```
    ```{topic-settings}
    ```
    ```{broker-settings}
    ```
    ```{refused-settings}
    ```
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import ClassVar

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from keptlog.cli import cli
from keptlog.log.broker import BROKER_NOT_APPLICABLE, BROKER_SETTINGS
from keptlog.log.config import NOT_APPLICABLE, SETTINGS
from keptlog.log.setting import Setting, as_text
from keptlog.log.words.units import LONG_MAX

_KEPT_AS_IT_IS = "\b"


def topic_settings() -> str:
    """All settings of topics."""
    return _settings(SETTINGS)


def broker_settings() -> str:
    """All settings of the cleaner itself."""
    return _settings(BROKER_SETTINGS)


def refused_settings() -> str:
    """Kafka's settings that are refused, with the reasons."""
    reasons: Mapping[str, str] = {**BROKER_NOT_APPLICABLE, **NOT_APPLICABLE}
    return _table(("setting", "why it is refused"), ((f"`{name}`", reasons[name]) for name in sorted(reasons)))


def _settings(settings: Iterable[Setting]) -> str:
    rows = ((f"`{each.name}`", _default(each), f"{each.doc}{_range(each)}") for each in settings)
    return _table(("setting", "default", "what it does"), rows)


def _default(setting: Setting) -> str:
    if setting.default in {LONG_MAX, sys.float_info.max}:
        return "no limit"
    return f"`{as_text(setting.default)}`" if as_text(setting.default) else "none"


def _range(setting: Setting) -> str:
    if setting.choices:
        return f" ({', '.join(f'`{choice}`' for choice in setting.choices)})"
    if setting.minimum is None:
        return ""
    bounds = f"{setting.minimum} and above" if setting.maximum is None else f"{setting.minimum} to {setting.maximum}"
    return f" ({bounds})"


def commands() -> str:
    """All commands with their arguments and options, as ``--help`` has them."""
    context = click.Context(cli, info_name="keptlog")
    return "\n".join(_command(cli, context, level=2))


def _command(command: click.Command, context: click.Context, *, level: int) -> Iterator[str]:
    yield f"{'#' * level} {context.command_path}\n"
    yield f"```text\n{' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n```\n"
    yield _paragraphs(command.help or "") + "\n"
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    records = [record for each in options if (record := each.get_help_record(context))]
    if records:
        yield _table(("option", ""), ((f"`{names}`", text) for names, text in records)) + "\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                its_level = level if command is cli else level + 1
                yield from _command(below, click.Context(below, info_name=name, parent=context), level=its_level)


def _paragraphs(text: str) -> str:
    """A help text as Markdown: what click is to keep as it is becomes a block."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text.replace("\f", "")))
    return "\n\n".join(
        f"```text\n{each.strip().removeprefix(_KEPT_AS_IT_IS).strip(chr(10))}\n```"
        if each.strip().startswith(_KEPT_AS_IT_IS)
        else each
        for each in paragraphs
    )


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


MADE: Mapping[str, Callable[[], str]] = {
    "commands": commands,
    "topic-settings": topic_settings,
    "broker-settings": broker_settings,
    "refused-settings": refused_settings,
}


class FromCode(SphinxDirective):
    """Stands for one of the texts above, by its name."""

    has_content: ClassVar[bool] = False

    def run(self) -> list[nodes.Node]:
        """The text as nodes; made each time, for Sphinx does not see that the code has changed."""
        self.env.note_reread()
        return self.parse_text_to_nodes(MADE[self.name](), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of them."""
    for name in MADE:
        app.add_directive(name, FromCode)
    return {"parallel_read_safe": True}
