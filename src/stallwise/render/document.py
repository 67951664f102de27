"""One HTML file that holds all it needs: no network, no outside part, nothing from the input ever taken as markup."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

if TYPE_CHECKING:
    from jinja2 import Environment, Template


@dataclass(frozen=True, slots=True)
class Part:
    """A section with a template, a style and scripts of its own, in a folder of its own. The scripts share their names."""

    name: str
    scripts: tuple[str, ...]

    @property
    def style(self) -> str:
        return asset(f"{self.name}/{self.name}.css")

    @property
    def script(self) -> str:
        """All files as one, whose names no other script sees."""
        return "(() => {\n" + "".join(asset(f"{self.name}/{script}.js") for script in self.scripts) + "})();\n"


def document(template: str, parts: Mapping[Part, dict[str, Any] | None] | None = None, **context: Any) -> str:
    """The whole file. A part for which there is nothing to show brings neither its style nor its script."""
    shown = [part for part, values in (parts or {}).items() if values]
    style = asset("document.css") + "".join(part.style for part in shown)
    script = asset("document.js") + "".join(part.script for part in shown)
    page: str = _template(template).render(
        style=Markup(style),
        script=Markup(script),
        style_hash=_content_hash(style),
        script_hash=_content_hash(script),
        version=version_shown(),
        **{part.name: _section(part, values) for part, values in (parts or {}).items()},
        **context,
    )
    return page


@cache
def asset(name: str) -> str:
    """A file that is shipped beside this one."""
    return (Path(__file__).parent / "assets" / name).read_text(encoding="utf-8")


@cache
def version_shown() -> str:
    """Of this program, as reports tell it."""
    from importlib.metadata import PackageNotFoundError, version  # slow to load, and only a page tells it

    try:
        return version("stallwise")
    except PackageNotFoundError:  # run from a checkout that was never installed
        return "from a checkout"


def _section(part: Part, values: dict[str, Any] | None) -> Markup:
    return Markup(_template(f"{part.name}/{part.name}.html").render(**values)) if values else Markup("")


def _content_hash(text: str) -> str:
    """How a content policy names an inline part."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _template(name: str) -> Template:
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    """Everything is escaped unless we made it."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # nobody but a page needs it

    return Environment(
        loader=FunctionLoader(asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
