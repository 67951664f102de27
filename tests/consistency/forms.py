"""One answer in its four forms, rendered from one diagnosis, and the words that a reader of each sees."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.render.html import to_html
from stallwise.render.json import to_dict
from stallwise.render.markdown import to_markdown
from stallwise.render.text import to_text
from tests.consistency.cases import Case

WIDE = 130  # characters; a broken line is put together again before anything is looked for


@dataclass(frozen=True, eq=False)
class Forms:
    """What a person or a program gets of one diagnosis."""

    diagnosis: Diagnosis
    data: dict[str, Any]
    text: str
    page: str
    markdown: str

    @cached_property
    def words(self) -> dict[str, str]:
        """The forms for people, without markup and in one line."""
        shown = re.sub(r"<(script|style)\b.*?</\1>", " ", self.page, flags=re.S)
        page = html.unescape(re.sub(r"<[^>]+>", " ", shown))
        plain = html.unescape(re.sub(r"\\([\\`*_{}\[\]<>|#~])", r"\1", self.markdown))
        return {"text": _flat(self.text), "html": _flat(page), "markdown": _flat(plain)}


def _flat(text: str) -> str:
    return " ".join(text.split())


def forms_of(case: Case) -> Forms:
    """One diagnosis, four renders."""
    return rendered(diagnose(*case.paths, cache=False, workers=1))


def rendered(diagnosis: Diagnosis) -> Forms:
    """The same for a diagnosis already made."""
    return Forms(
        diagnosis, to_dict(diagnosis), to_text(diagnosis, width=WIDE), to_html(diagnosis), to_markdown(diagnosis)
    )
