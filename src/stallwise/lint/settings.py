"""What a project says in its pyproject.toml, under [tool.stallwise.lint]."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

from stallwise.errors import BadRequest
from stallwise.lint.remark import Remark

KNOWN = {"select", "ignore", "exclude", "per-file-ignores"}


@dataclass(frozen=True, slots=True)
class Settings:
    """Which remarks are wanted, and of which files."""

    select: tuple[str, ...] = ()  # causes or checks; empty: all
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()  # patterns of files
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = ()
    root: Path = Path()

    def wants(self, remark: Remark) -> bool:
        """Whether this remark is to be shown."""
        names = {remark.cause, remark.check}
        if self.select and not names & set(self.select):
            return False
        quiet = [n for pattern, ignored in self.per_file if self._matches(Path(remark.file), pattern) for n in ignored]
        return not names & {*self.ignore, *quiet}

    def leaves_out(self, file: Path) -> bool:
        """Whether this file is not to be read."""
        return any(self._matches(file, pattern) for pattern in self.exclude)

    def _matches(self, file: Path, pattern: str) -> bool:
        try:
            inside = file.resolve().relative_to(self.root.resolve()).as_posix()
        except ValueError:
            inside = file.as_posix()
        wide = pattern.rstrip("/")
        return fnmatch(inside, wide) or fnmatch(inside, f"{wide}/*") or fnmatch(file.name, wide)

    def with_options(self, select: tuple[str, ...], ignore: tuple[str, ...]) -> Settings:
        """What is typed beats what is written for `select`, and adds to it for `ignore`."""
        return replace(self, select=select or self.select, ignore=(*self.ignore, *ignore))


def settings_for(place: Path) -> Settings:
    """Those of the nearest pyproject.toml at or above a place."""
    start = place.resolve() if place.is_dir() else place.resolve().parent
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            return _read(file)
    return Settings()


def _read(file: Path) -> Settings:
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadRequest(f"{file} cannot be read: {error}", hint="mend it, or run elsewhere") from error
    tool = data.get("tool", {})
    table = tool.get("stallwise", {}).get("lint", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict) or (unknown := sorted(set(table) - KNOWN)):
        raise BadRequest(
            f"{file}: [tool.stallwise.lint] has no setting {', '.join(unknown) if isinstance(table, dict) else ''}",
            hint=f"settings: {', '.join(sorted(KNOWN))}",
        )
    per_file = table.get("per-file-ignores", {})
    return Settings(
        _words(table, "select", file),
        _words(table, "ignore", file),
        _words(table, "exclude", file),
        tuple((pattern, _words(per_file, pattern, file)) for pattern in per_file),
        file.parent,
    )


def _words(table: dict[str, object], key: str, file: Path) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise BadRequest(f"{file}: {key} in [tool.stallwise.lint] is no list of words", hint=f'{key} = ["host-sync"]')
    return tuple(value)
