"""A document as one HTML file that holds all it needs: no network, no outside part, nothing from the input taken as markup."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from stallwise.render.blocks import (
    Bars,
    Block,
    Document,
    Group,
    Interactive,
    Number,
    Range,
    Series,
    Tab,
    Table,
    Words,
    plain,
    sort_value,
)
from stallwise.render.documents import document_of
from stallwise.render.svg import box, line
from stallwise.units import Unit, show

if TYPE_CHECKING:
    from jinja2 import Environment, Template

BAR_WIDTH, BAR_HEIGHT = 400, 18
SORTED = "tables"  # the folder of what sorts a table


def to_html(answer: object, **options: Any) -> str:
    """A document, or an answer that has one. A part for which there is nothing to show brings neither style nor script."""
    document = answer if isinstance(answer, Document) else document_of(answer, deep=True, **options)
    parts = list(_parts(document.blocks))
    style = asset("document.css") + "".join(asset(f"{name}/{name}.css") for name, _ in parts)
    script = '"use strict";\n' + "".join(
        f"(() => {{\n{code}}})();\n"
        for code in (*(part_script(name, scripts) for name, scripts in parts), _without_remarks(asset("document.js")))
    )
    page: str = _template("document.html").render(
        document=document,
        panels=_panels(document.blocks),
        whole=True,
        style=Markup(style),
        script=Markup(script),
        style_hash=_content_hash(style),
        script_hash=_content_hash(script),
        version=version_shown(),
    )
    return page


def to_fragment(document: Document) -> str:
    """The answer alone, for a page that has the styles and scripts already."""
    part: str = _template("document.html").render(document=document, panels=_panels(document.blocks), whole=False)
    return part


def _panels(blocks: Sequence[Block]) -> list[tuple[str, str, list[Block]]]:
    """Name, word and blocks of each tab in which anything stands."""
    return [(tab.name.lower(), tab.value, inside) for tab in Tab if (inside := [b for b in blocks if b.tab is tab])]


@cache
def asset(name: str) -> str:
    """A file that is shipped beside this one."""
    return (Path(__file__).parent / "assets" / name).read_text(encoding="utf-8")


@cache
def version_shown() -> str:
    """Of this program."""
    from importlib.metadata import PackageNotFoundError, version  # slow to load, and only a page shows it

    try:
        return version("stallwise")
    except PackageNotFoundError:  # run from a checkout that was never installed
        return "from a checkout"


def _parts(blocks: Sequence[Block]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Folders of styles and scripts, each once."""
    inside = [b for block in blocks for b in (block, *(block.blocks if isinstance(block, Group) else ()))]
    if any(isinstance(b, Table) and b.slug for b in inside):
        yield SORTED, (SORTED,)
    yield from ((b.name, b.scripts) for b in inside if isinstance(b, Interactive))


def part_script(name: str, scripts: Sequence[str]) -> str:
    """All scripts of a part as one."""
    return _without_remarks("".join(asset(f"{name}/{script}.js") for script in scripts))


def _without_remarks(script: str) -> str:
    """Remarks and indentation stay in the source: a report carries its scripts along."""
    lines = (line.strip() for line in script.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//")) + "\n"


def _content_hash(text: str) -> str:
    """How a content policy names an inline part."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _words(words: Words) -> Markup:
    """A sentence; a figure with a source shows it on demand."""
    parts = words if isinstance(words, tuple) else (words,)
    return Markup("").join(_figure(p) if isinstance(p, (Number, Range)) and p.source else escape(str(p)) for p in parts)


def _figure(figure: Number | Range) -> Markup:
    note = escape(figure.source)
    return Markup('<span class="tip" tabindex="0">{}<span class="note" role="tooltip">{}</span></span>').format(
        str(figure), note
    )


def _waterfall(bars: Bars, place: int) -> Markup:
    """One bar behind those before it; dashed, where the whole would end after the first fix."""
    start = sum(bar.share for bar in bars.bars[:place])
    bar = bars.bars[place]
    parts = [
        box(0, 0, BAR_WIDTH, BAR_HEIGHT, "track"),
        box(start * BAR_WIDTH, 0, bar.share * BAR_WIDTH, BAR_HEIGHT, bar.kind),
    ]
    if bars.goal_share is not None:
        at = bars.goal_share * BAR_WIDTH
        parts.append(line(at, 0, at, BAR_HEIGHT, "after"))
    size = f'viewBox="0 0 {BAR_WIDTH} {BAR_HEIGHT}" preserveAspectRatio="none" height="{BAR_HEIGHT}"'
    return Markup(f'<svg {size} aria-hidden="true">{"".join(parts)}</svg>')


def _meter(words: Words) -> Markup:
    share = words.value if isinstance(words, Number) else 0.0
    parts = [box(0, 0, 80, 6, "track"), box(0, 0, 80 * share, 6, "meter")]
    return Markup(f'<svg viewBox="0 0 80 6" height="6" aria-hidden="true">{"".join(parts)}</svg>')


def _drawn(series: Series) -> Markup:
    import numpy as np

    from stallwise.render.pictures._chart import PANEL, Curve, panel
    from stallwise.render.svg import picture

    values = np.asarray(series.values, float)
    parts = panel([Curve(series.name, np.arange(len(values), dtype=float), values)], series.name, series.unit, "")
    return picture(parts, PANEL + 4, series.name)


def _kind(block: Block) -> str:
    return type(block).__name__


def _section(block: Interactive) -> Markup:
    return Markup(_template(f"{block.name}/{block.name}.html").render(**block.values))


@cache
def _template(name: str) -> Template:
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    """Everything is escaped unless we made it."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # only a page needs it

    found = Environment(
        loader=FunctionLoader(asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    found.filters["share"] = lambda value: show(value, Unit.SHARE)
    found.filters |= {"words": _words, "plain": plain, "sort_value": sort_value, "meter": _meter, "drawn": _drawn}
    found.filters |= {"section": _section, "kind": _kind}
    found.globals |= {"waterfall": _waterfall, "kind": _kind}
    return found
