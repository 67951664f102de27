"""Remarks on source code: as linters print them, as a document, GitHub annotations and SARIF."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import unified_diff
from typing import Any

from stallwise.render.blocks import Document, Group, Verdict, steps
from stallwise.render.blocks import document as filled

Row = Mapping[str, Any]


def document(rows: Sequence[Row], files: int, mended: int = 0, *, deep: bool = False) -> Document:
    """One line a remark, as linters print them, and what to do below it."""
    safe = sum(r["edit"] is not None for r in rows)
    note = f", {mended} fixed" if mended else f", --fix can change {safe}" if safe else ""
    found = f"{len(rows)} remark{'s' if len(rows) != 1 else ''}" if rows else "nothing found"
    remarks = (
        Group(
            (steps("", [f"fix: {r['fix']}   cost: {r['cost']}"]),),
            title=f"{r['file']}:{r['line']}:{r['column']}: {r['cause']} {r['message']}",
        )
        for r in rows
    )
    says = f"{found} in {files} file{'s' if files != 1 else ''}{note}"
    return filled(Verdict(says, tone="unclear" if rows else "good"), *remarks, verb="lint")


def as_text(rows: Sequence[Row], files: int, mended: int = 0) -> str:
    """As linters print them: one line a remark that editors can jump to, the count last."""
    lines = []
    for r in rows:
        lines.append(f"{r['file']}:{r['line']}:{r['column']}: {r['cause']} {r['message']}")
        lines.append(f"    fix: {r['fix']}   cost: {r['cost']}")
    return "\n".join([*lines, document(rows, files, mended).verdict.line])


def as_diff(before: str, after: str, name: str) -> str:
    """What would change, as patch reads it."""
    lines = unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), name, name)
    return "".join(lines)


def as_github(rows: Sequence[Row]) -> str:
    """Workflow commands that GitHub shows beside the line."""
    return "\n".join(
        f"::warning file={_property(str(r['file']))},line={r['line']},col={r['column']},title=stallwise {r['cause']}::"
        f"{_data(str(r['message']))}. Fix: {_data(str(r['fix']))}"
        for r in rows
    )


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def as_sarif(rows: Sequence[Row]) -> dict[str, Any]:
    """SARIF 2.1.0, for code-scanning pages."""
    causes = sorted({str(r["cause"]) for r in rows})
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "stallwise", "rules": [{"id": c, "name": c} for c in causes]}},
                "results": [
                    {
                        "ruleId": r["cause"],
                        "ruleIndex": causes.index(str(r["cause"])),
                        "level": "warning",
                        "message": {"text": f"{r['message']}. Fix: {r['fix']}. Cost: {r['cost']}"},
                        "locations": [
                            {
                                "physicalLocation": {
                                    "artifactLocation": {"uri": str(r["file"]).replace("\\", "/")},
                                    "region": {"startLine": r["line"], "startColumn": r["column"]},
                                }
                            }
                        ],
                    }
                    for r in rows
                ],
            }
        ],
    }
