"""Read training scripts without running them and point at lines that stall."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from stallwise.render import strict_json as json
from stallwise.surfaces.cli._files_to_write import write_file

STDIN = "-"
EXAMPLES = """\b
Examples:
  stallwise lint train.py
  stallwise lint src/ --ignore host-sync --format github
  stallwise lint train.py --diff        what --fix would change
  cat train.py | stallwise lint - --stdin-filename train.py

Silence a line with "# stallwise: ignore[host-sync]" or "# noqa: host-sync", a project in pyproject.toml under
[tool.stallwise.lint]: select, ignore, exclude, per-file-ignores.
Exit 0: nothing found, 1: something found, 3: nothing could be read."""


@click.command(epilog=EXAMPLES)
@click.argument("paths", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
@click.option(
    "--format", "shape", type=click.Choice(["text", "json", "sarif", "github"]), default="text", show_default=True
)
@click.option("--select", multiple=True, metavar="CAUSE", help="Only these causes or checks.")
@click.option("--ignore", multiple=True, metavar="CAUSE", help="Not these causes or checks.")
@click.option("--fix", "fixes", is_flag=True, help="Make the changes that are safe, and report the rest.")
@click.option("--diff", "shows", is_flag=True, help="Print what --fix would change, and change nothing.")
@click.option("--stdin-filename", default="<stdin>", metavar="NAME", help="What the text from - is called.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 even when something was found.")
def command(
    paths: tuple[str, ...],
    as_json: bool,
    shape: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fixes: bool,
    shows: bool,
    stdin_filename: str,
    exit_zero: bool,
) -> None:
    """Find syncs, leaks, missing overlap and wrong timing in PATHS; - reads standard input."""
    from stallwise.errors import UnreadableInput
    from stallwise.lint import lint, mend
    from stallwise.lint.settings import settings_for
    from stallwise.progress import shown
    from stallwise.render.documents.remarks import as_diff, as_github, as_sarif, as_text

    settings = settings_for(Path(next((p for p in paths if p != STDIN), "."))).with_options(select, ignore)
    files = [f for p in paths for f in _files(p) if not settings.leaves_out(f)]
    if not files:
        raise UnreadableInput(f"no Python file in {', '.join(paths)}", hint="name a script: stallwise lint train.py")
    remarks, problems, diffs, mended_count, read = [], [], [], 0, 0
    for file in shown(files, len(files), "reading", "files"):
        piped = str(file) == STDIN
        name = stdin_filename if piped else str(file)
        try:
            text = sys.stdin.read() if piped else file.read_text(encoding="utf-8")
            found = [r for r in lint(text, name) if settings.wants(r)]
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"cannot read {name}: {error}")
            continue
        except UnreadableInput as error:
            problems.append(error.problem)
            continue
        read += 1
        changed = mend(text, found) if fixes or shows else text
        if shows:
            diffs.append(as_diff(text, changed, name))
        elif changed != text:
            if piped:
                click.echo(changed, nl=False)
            else:
                write_file(file, changed)
            before = len(found)
            found = [r for r in lint(changed, name) if settings.wants(r)]
            mended_count += before - len(found)
        remarks += found
    if not read:
        raise UnreadableInput("; ".join(problems), hint="check it with: python -m py_compile FILE")
    rows = [r.to_dict() for r in remarks]
    if shows:
        click.echo("".join(diffs), nl=False)
    elif as_json or shape == "json":
        result = {"files": read, "remarks": rows, "problems": problems, "mended": mended_count}
        click.echo(json.dumps(result, indent=2))
    elif shape == "sarif":
        click.echo(json.dumps(as_sarif(rows), indent=2))
    else:
        # Mended text that was piped in is the output; what is left to say goes beside it.
        output = as_github(rows) if shape == "github" else as_text(rows, read, mended_count)
        click.echo(output, err=fixes and any(p == STDIN for p in paths))
    for problem in problems:
        click.echo(f"stallwise: left out: {problem}", err=True)
    sys.exit(1 if remarks and not exit_zero else 0)


def _files(path: str) -> list[Path]:
    place = Path(path)
    return sorted(place.rglob("*.py")) if path != STDIN and place.is_dir() else [place]
