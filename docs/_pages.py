"""Pages that are written from the code when the site is built, so that they cannot go stale.

A page per cause (its rule's docstring), the list of facts, the list of formats, and the help of every command.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))


def pages() -> dict[str, str]:
    """Every generated page by its place."""
    return {**_causes(), "facts.md": _facts(), "formats.md": _formats(), "cli.md": _commands()}


def on_files(files: Any, config: Any) -> Any:
    """The hook that the site's generator calls."""
    from mkdocs.structure.files import File

    for place, text in pages().items():
        files.append(File.generated(config, place, content=text))
    return files


def _causes() -> dict[str, str]:
    from stallwise.causes import all_rules

    found: dict[str, str] = {}
    lines = ["# Causes", "", "What the doctor knows, one page each. The same page: `stallwise explain CAUSE`.", ""]
    family = ""
    for rule in all_rules():
        if rule.family != family:
            family = rule.family
            lines += [f"\n## {family.capitalize()}\n"]
        first, *rest = rule.page.splitlines()
        lines.append(f"- [{rule.cause}]({rule.cause}.md): {_plain(first)}")
        reads = "".join(f"- `{q.name}`: {_plain(q.meaning)}\n" for q in rule.needs)
        explains = "".join(f"- {s.value}: {word}\n" for s, word in rule.explains.items())
        body = "\n".join(_plain(line) if not line.startswith("#") else line for line in rest)
        found[f"causes/{rule.cause}.md"] = (
            f"# {rule.cause}\n\n*{_plain(first)}*\n{body}\n"
            + (f"\n## What it is seen by\n\n{reads}" if reads else "")
            + (f"\n## What it explains\n\n{explains}" if explains else "")
        )
    found["causes/index.md"] = "\n".join(lines) + "\n"
    return found


def _plain(text: str) -> str:
    """Angle and square brackets in prose are prose."""
    return text.replace("<", "&lt;").replace("[", "\\[").replace("__", "\\_\\_")


def _facts() -> str:
    from stallwise.evidence.catalog import quantities
    from stallwise.units import example

    lines = [
        "# Facts", "", "Words for `case.toml` and `stallwise diagnose --fact WORD=VALUE`.", "",
        "| word | also | like | meaning |", "|---|---|---|---|",
    ]  # fmt: skip
    for q in sorted(quantities().values(), key=lambda q: ("." in q.name, q.name)):
        row = (f"`{q.name}`", ", ".join(q.aliases), example(q.unit), q.meaning)
        lines.append("| " + " | ".join(_plain(cell).replace("|", "\\|") for cell in row) + " |")
    return "\n".join(lines) + "\n"


def _formats() -> str:
    from stallwise.readers import all_readers

    lines = [
        "# Formats",
        "",
        "Files are recognised by their content, never by their name.",
        "",
        "| format | what |",
        "|---|---|",
    ]
    for reader in sorted(all_readers(), key=lambda r: r.FORMAT.lower()):
        first = (reader.__doc__ or "").strip().splitlines()[0].replace("|", "\\|")
        lines.append(f"| {_plain(reader.FORMAT)} | {_plain(first)} |")
    return "\n".join(lines) + "\n"


def _commands() -> str:
    from stallwise.surfaces.cli import main

    lines = [
        "# Commands",
        "",
        "Every command prints its result to stdout and progress to stderr; `--json` is for programs.",
        "",
    ]
    for path, command in _walk(main, ["stallwise"]):
        context = click.Context(command, info_name=" ".join(path), max_content_width=100, terminal_width=100)
        lines += [f"## {' '.join(path[1:]) or 'stallwise'}", "", "```text", command.get_help(context), "```", ""]
    return "\n".join(lines)


def _walk(command: click.Command, path: list[str]) -> list[tuple[list[str], click.Command]]:
    found = [(path, command)]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                found += _walk(inner, [*path, name])
    return found
