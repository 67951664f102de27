"""The site: a page for every cause, formula, fact, format and command; every link leads somewhere."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

from stallwise.causes import all_rules
from stallwise.physics.costs.formulas import all_formulas
from tests.docs.blocks import REPO

DOCS = REPO / "docs"


@pytest.fixture(scope="module")
def generated() -> ModuleType:
    spec = importlib.util.spec_from_file_location("stallwise_docs_pages", DOCS / "_pages.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_cause_and_formula_has_a_page(generated: ModuleType) -> None:
    pages = generated.pages()
    assert {f"causes/{r.cause}.md" for r in all_rules()} <= set(pages)
    for rule in all_rules():
        assert f"# {rule.cause}" in pages[f"causes/{rule.cause}.md"]
    assert {f"{name}.md" for name in all_formulas()} <= {p.name for p in (DOCS / "formulas").glob("*.md")}


def test_every_command_is_in_the_manual(generated: ModuleType) -> None:
    text = generated.pages()["cli.md"]
    for name in (p.stem for p in (REPO / "src/stallwise/surfaces/cli").glob("*.py") if not p.stem.startswith("_")):
        assert f"## {name.replace('_', '-')}\n" in text


def _links(text: str) -> list[str]:
    plain = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    plain = re.sub(r"`[^`\n]*`", "", plain)
    return re.findall(r"(?<!\\)\]\(([^)\s]+)\)", plain)


def _anchor(title: str) -> str:
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title.lower())).strip("-")


def test_links_lead_somewhere(generated: ModuleType) -> None:
    pages = dict(generated.pages())
    for file in DOCS.rglob("*.md"):
        pages[str(file.relative_to(DOCS))] = file.read_text(encoding="utf-8")
    broken = []
    for place, text in pages.items():
        for link in _links(text):
            if link.startswith(("http://", "https://", "mailto:")):
                continue
            path, _, anchor = unquote(link).partition("#")
            target = str((DOCS / place).parent.joinpath(path).resolve().relative_to(DOCS.resolve())) if path else place
            if target not in pages and not (DOCS / target).is_file():  # a picture
                broken.append(f"{place}: {link}")
            elif anchor and anchor not in {_anchor(t) for t in re.findall(r"^#+ (.+)$", pages[target], re.M)}:
                broken.append(f"{place}: {link} (no such heading)")
    assert not broken


def test_links_of_the_front_page_lead_to_files() -> None:
    for name in ("README.md", "CONTRIBUTING.md", "DESIGN.md"):
        for link in _links((REPO / name).read_text(encoding="utf-8")):
            if not link.startswith(("http", "#", "mailto:")):
                assert (REPO / unquote(link).split("#")[0]).exists(), f"{name}: {link}"


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(words, cwd=REPO, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    html = (tmp_path / "site" / "causes" / "input-starved.html").read_text(encoding="utf-8")
    assert "input-starved" in html
