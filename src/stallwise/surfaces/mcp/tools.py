"""What each tool does: small structured answers, long lists in pages, files of one folder only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.errors import BadRequest
from stallwise.surfaces.web import answers
from stallwise.surfaces.web.folder import Folder

MOST_ROWS = 50
USUAL_ROWS = 10
LONGEST_TEXT = 4000  # letters of any one text in an answer
LARGEST_SOURCE_BYTES = 2 << 20
MOST_CHARACTERS = 8000  # letters of one line in a round


def answer(root: str, tool: str, *asked: Any) -> dict[str, Any]:
    """One call, as it is made in a process of its own."""
    found: dict[str, Any] = getattr(Tools(Path(root)), tool)(*asked)
    return found


class Tools:
    """Bound to one folder; every path is asked and told relative to it."""

    def __init__(self, root: Path) -> None:
        self.folder = Folder(root)

    def files(self, path: str = "", offset: int = 0, limit: int = USUAL_ROWS) -> dict[str, Any]:
        """Files under a path of the folder."""
        rows = [{"path": self.folder.relative(p), "size_bytes": p.stat().st_size} for p in self.folder.files(path)]
        return _page(rows, "files", offset, limit)

    def diagnose(
        self,
        paths: Sequence[str],
        facts: Sequence[str],
        part: str,
        offset: int,
        limit: int,
        share: bool,
        answers: Sequence[str] = (),
    ) -> dict[str, Any]:
        """The verdict, and one part of the report as a page."""
        from stallwise.doctor.examine import diagnose
        from stallwise.render.blocks import plain
        from stallwise.render.json import to_dict
        from stallwise.render.redact import shareable
        from stallwise.render.verdict import verdict

        if not paths and not facts:
            raise BadRequest("there is nothing to look at", hint="give paths, or facts such as mfu=0.22")
        found: Diagnosis = diagnose(
            *self._paths(paths), facts=list(facts), answers=list(answers)[:MOST_ROWS], base=self.folder.root, workers=1
        )
        if share:
            found = shareable(found)
        whole = to_dict(found)
        parts = ("findings", "proofs", "hypotheses", "next", "notes", "contradictions", "unknown", "kernels", "facts")
        if part not in parts:
            raise BadRequest(f"a report has no part '{part}'", hint=f"one of: {', '.join(parts)}")
        says = verdict(found)
        rows = _facts(found) if part == "facts" else whole.get(part, [])
        answer = {
            "what": plain(says.what), "why": plain(says.why),
            "do": f"{plain(says.do)} {plain(says.worth)}".strip(), "state": found.state.value,
            "healthy": found.healthy, "limit": whole["limit"], "why_unclear": found.why_unclear,
            "ranked": list(found.ranked[:MOST_ROWS]), "questions": whole["questions"],
            "ledger": whole["ledger"], "inputs": whole["inputs"][:MOST_ROWS],
        }  # fmt: skip
        redacted: dict[str, Any] = self._redacted(answer | _page(rows, part, offset, limit))
        return redacted

    def compare(self, good: Sequence[str], bad: Sequence[str], offset: int, limit: int) -> dict[str, Any]:
        """What changed, most seconds first."""
        from stallwise.doctor.compare import compare
        from stallwise.render.documents.comparison import data

        whole = data(compare(self._paths(good), self._paths(bad)))
        rows = [
            {"kind": kind, **row} for kind in ("regressions", "improvements", "setup", "other") for row in whole[kind]
        ]
        answer = {k: whole[k] for k in ("metric", "slower", "appeared", "vanished", "unexplained_s")}
        redacted: dict[str, Any] = self._redacted(answer | _page(rows, "changes", offset, limit))
        return redacted

    def explain(self, name: str, offset: int = 0, limit: int = MOST_ROWS) -> dict[str, Any]:
        """The page of a cause or concept, or what answers a question in words; without a name the list of both."""
        from stallwise.causes import all_rules
        from stallwise.drill.explain import concepts, explained

        if not name:
            rows = [{"cause": r.cause, "family": r.family, "says": r.page.splitlines()[0]} for r in all_rules()]
            return _page(rows, "causes", offset, limit) | {"concepts": list(concepts())}
        page = explained(name)
        if "question" not in page:  # there the text is all there is
            del page["text"]
        return page

    def drill(self, verb: str, name: str, text: str) -> dict[str, Any]:
        """A round of the drill: list, start, reply, transcript."""
        from stallwise.drill import session_api

        if verb == "list":
            return {"incidents": session_api.scenarios()}
        if verb == "start":
            return session_api.start(name or session_api.NEW)
        if verb == "reply":
            return session_api.reply(name, text[:MOST_CHARACTERS])
        if verb == "transcript":
            return session_api.examined(name)
        raise BadRequest(f"a drill has no '{verb[:40]}'", hint="list, start, reply or transcript")

    def plan(self, kind: str, question: dict[str, Any]) -> dict[str, Any]:
        """A planning question: one layout, the best layouts, a service, or a formula."""
        if kind == "layout":
            return answers.layout(question)
        if kind == "training":
            return answers.best_layouts(question)
        if kind == "serving":
            return answers.service(question)
        if kind == "formula":
            return _formula(question)
        raise BadRequest(f"there is no plan of kind '{kind[:40]}'", hint="layout, training, serving or formula")

    def simulate(self, question: dict[str, Any]) -> dict[str, Any]:
        """A pipeline schedule, slot by slot, without its picture."""
        found = answers.pipeline(question)
        del found["svg"]
        return found

    def lint(self, path: str, offset: int, limit: int) -> dict[str, Any]:
        """Lines of Python files that stall."""
        from stallwise.lint import lint

        sources = [p for p in self.folder.files(path) if p.suffix == ".py"]
        if not sources:
            raise BadRequest(f"there is no Python file in '{path[:120]}'", hint="name a .py file or its folder")
        rows = []
        for source in sources:
            if source.stat().st_size > LARGEST_SOURCE_BYTES:
                continue
            text = source.read_text(encoding="utf-8", errors="replace")
            rows += [r.to_dict() for r in lint(text, self.folder.relative(source))]
        return {"files_read": len(sources)} | _page(rows, "remarks", offset, limit)

    def _paths(self, asked: Sequence[str]) -> list[str]:
        if len(asked) > MOST_ROWS:
            raise BadRequest(f"at most {MOST_ROWS} paths at once", hint="name their folder instead")
        found = [p for a in asked for p in self.folder.given(a)]
        if asked and not found:
            raise BadRequest("there is no file in it", hint="list the files first")
        return found

    def _redacted(self, value: Any) -> Any:
        """The same with paths told from the folder."""
        if isinstance(value, str):
            return _short(value.replace(f"{self.folder.root}/", "").replace(str(self.folder.root), "."))
        if isinstance(value, dict):
            return {k: self._redacted(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._redacted(v) for v in value]
        return value


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}… ({len(text):,} letters in all)"


def _page(rows: Sequence[Any], name: str, offset: int, limit: int) -> dict[str, Any]:
    """Part of a list, how long it is, and where the next part begins."""
    if offset < 0 or not 1 <= limit <= MOST_ROWS:
        raise BadRequest("that page cannot be", hint=f"offset from 0, limit from 1 to {MOST_ROWS}")
    end = offset + limit
    page: dict[str, Any] = {name: list(rows[offset:end]), "total": len(rows)}
    return page | ({"next_offset": end} if end < len(rows) else {})


def _facts(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    return [
        {
            "name": f.quantity.name, "value": f.value, "unit": f.quantity.unit.value, "shown": str(f),
            "meaning": f.quantity.meaning, "of": str(f.scope), "source": str(f.source), "samples": f.samples,
        }
        for found in diagnosis.evidence.facts.values()
        for f in found
    ]  # fmt: skip


def _formula(question: dict[str, Any]) -> dict[str, Any]:
    from stallwise.physics.costs.formulas import all_formulas, evaluate, formula_named, inputs_of

    name = question.get("name", "")
    if not name:
        return {"formulas": {k: (m.__doc__ or "").strip().splitlines()[0] for k, m in all_formulas().items()}}
    if not isinstance(name, str):
        raise BadRequest("the name of a formula is a text", hint="adam-states")
    module = formula_named(name)
    given = {k: str(v) for k, v in question.items() if k != "name"}
    return {
        "name": name,
        "inputs": inputs_of(module) | given,
        "results": evaluate(module, given),
        "source": module.SOURCE,
    }
