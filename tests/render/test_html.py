"""The HTML report: one file, everything in it escaped, the same answer as the other forms."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.render.html import to_html
from stallwise.render.json import to_dict
from stallwise.render.markdown import to_markdown
from stallwise.render.text import to_text
from tests.render.hostile import MARKUP, hostile

REPO = Path(__file__).parents[2]
SCENARIOS = sorted((REPO / "examples" / "scenarios").glob("*/case.toml"))
ALLOWED_TAGS = set(
    "html head meta title link style body a header b span button main div h1 h2 h3 p section table thead tbody tr th td svg "
    "rect line text path circle title ul ol li code pre details summary figure figcaption footer script strong "
    "canvas label select input noscript nav dialog dl dt dd".split()
)


class Page(HTMLParser):
    """What a browser would see: tags, attributes, text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def test_nothing_from_the_input_becomes_markup() -> None:
    page = Page(to_html(hostile()))
    assert {tag for tag, _ in page.tags} <= ALLOWED_TAGS
    scripts = [attrs.get("type") for tag, attrs in page.tags if tag == "script"]
    assert sorted(scripts, key=str) == [None, "application/json"]  # what runs, and data that does not
    for tag, attrs in page.tags:
        assert not [name for name in attrs if name.startswith("on")], (tag, attrs)
        assert not (attrs.get("src") or ""), (tag, attrs)
    assert MARKUP in page.text  # shown as words


def test_the_page_needs_no_network_and_runs_only_its_own_script() -> None:
    html = to_html(hostile())
    page = Page(html)
    policy = next(a["content"] for t, a in page.tags if t == "meta" and a.get("http-equiv"))
    assert policy is not None and "default-src 'none'" in policy and "unsafe" not in policy
    assert not re.findall(r'(?:src|href)="(?!data:,|#)[^"]*"', html)
    assert not [a for _, a in page.tags if "style" in a]


@pytest.mark.parametrize("case", SCENARIOS, ids=lambda p: p.parent.name)
def test_all_forms_say_the_same(case: Path) -> None:
    diagnosis = diagnose(str(case))
    page = Page(to_html(diagnosis)).text
    text, markdown, plain = to_text(diagnosis), to_markdown(diagnosis), to_dict(diagnosis)
    first = diagnosis.findings[0]
    unescaped = re.sub(r"\\(.)", r"\1", markdown).replace("&lt;", "<").replace("&gt;", ">")
    wanted = [first.headline, first.cause, *(fix.action for fix in first.fixes)]
    wanted += [s.capture.command for s in diagnosis.next[:1]] + [r.text for r in diagnosis.contradictions]
    for form in (page, text, unescaped):
        squeezed = "".join(form.split())  # the terminal wraps its lines
        assert not [w for w in wanted if "".join(w.split()) not in squeezed]
    for form in (page, unescaped):  # the terminal leaves it out where the answer is plain
        assert not [w for w in first.overturn if "".join(w.split()) not in "".join(form.split())]
    assert plain["findings"][0]["headline"] == first.headline
    assert [f["action"] for f in plain["findings"][0]["fixes"]] == [f.action for f in first.fixes]


@pytest.mark.parametrize("case", SCENARIOS[:2], ids=lambda p: p.parent.name)
def test_the_verdict_stands_first_and_in_three_lines(case: Path) -> None:
    html = to_html(diagnose(str(case)))
    start = html.index('id="verdict"')
    block = html[start : html.index("</div>", start)]
    assert 2 <= len(re.findall(r"<h1>|<p>|<p class=\"do\">", block)) <= 3
    assert start < html.index("<section")
    assert len(html.encode()) < 400_000


def test_every_table_has_headings_and_every_picture_a_label() -> None:
    page = Page(to_html(hostile()))
    assert all(a.get("scope") == "col" for t, a in page.tags if t == "th")
    pictures = [a for t, a in page.tags if t == "svg"]
    assert pictures
    assert all(a.get("aria-label") or a.get("aria-hidden") == "true" for a in pictures)
