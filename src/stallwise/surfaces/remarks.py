"""What the job's own source says about a finding: remarks of lint that name the same cause, and the line that fills what grows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.evidence.catalog import job
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Source
from stallwise.evidence.user_lines import AT, GROWING, KIND, CodeLine
from stallwise.lint import lint, mend
from stallwise.lint.remark import Remark
from stallwise.render.documents.remarks import as_diff

LARGEST_BYTES = 1 << 20  # a training script is smaller
LEAK = "memory-leak"
FILLS = frozenset({"append", "appendleft", "extend", "add", "insert", "update", "setdefault"})


def with_remarks(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis with lines of the recorded script, where that lies here and says something of a cause that was found."""
    path, _, remarks = _script(diagnosis)
    if path is None:
        return diagnosis
    joined = (_joined(f, remarks) for f in diagnosis.findings)
    found = (_filled(f, diagnosis.evidence, path) if f.cause == LEAK and f.code_line is None else f for f in joined)
    return replace(diagnosis, findings=tuple(found))


def patch_of(diagnosis: Diagnosis) -> str:
    """What lint would change in the recorded script against the first finding, as `patch -p0` reads it; empty where it cannot."""
    path, text, remarks = _script(diagnosis)
    causes = [f.cause for f in diagnosis.findings[:1]]
    return as_diff(text, mend(text, [r for r in remarks if r.cause in causes]), str(path))


def _script(diagnosis: Diagnosis) -> tuple[Path | None, str, list[Remark]]:
    """The recorded script, where it lies here, its text, and what lint remarks."""
    fact = diagnosis.evidence.get(job.SCRIPT)
    path = Path(str(fact.value)) if fact is not None else None
    text = _text(path) if path is not None else ""
    if not text:
        return None, "", []
    try:
        return path, text, lint(text, str(path))
    except (ValueError, SyntaxError, RecursionError):
        return path, text, []


def _text(path: Path) -> str:
    try:
        small = path.is_file() and path.stat().st_size <= LARGEST_BYTES
        return path.read_text(encoding="utf-8") if small else ""
    except (OSError, ValueError):
        return ""


def _joined(finding: Finding, remarks: list[Remark]) -> Finding:
    of_cause = [r for r in remarks if r.cause == finding.cause]
    if not of_cause:
        return finding
    first = of_cause[0]
    reasons = tuple(Reason(r.message, (Source(r.file, f"line {r.line}"),)) for r in of_cause)
    line = CodeLine(first.file, first.line, "", None)
    return _with_line(finding, line, f"{line.place}: {first.message}", f"{line.place}: {first.fix}", reasons)


def _with_line(finding: Finding, line: CodeLine, says: str, fix: str, reasons: tuple[Reason, ...] = ()) -> Finding:
    fixes, headline = finding.fixes, finding.headline
    if fixes and finding.code_line is not None:  # what was measured there knows better what a cure is worth
        fixes = (*fixes, Fix(fix))
    elif fixes and line.place not in fixes[0].action:
        stands = fix.endswith(fixes[0].action)
        fixes = (replace(fixes[0], action=fix) if stands else Fix(fix, finding.gain), *fixes[stands:])
    if finding.code_line is None and line.place not in headline:
        headline = f"{headline.removesuffix('.')}; {says}."
    return replace(
        finding,
        headline=headline,
        code_line=finding.code_line or line,
        because=(*reasons, *finding.because),
        fixes=fixes,
    )


def _filled(finding: Finding, evidence: Evidence, script: Path) -> Finding:
    """With the line that adds to the container that grew; where no container is known, the one of those that stacks were seen in."""
    names = [str(name).rpartition(".")[2] for table in evidence.table(GROWING) for name in table.columns["name"]]
    looked = _looked_at(evidence)
    found = [(path, s) for path in _sources(script, looked) for s in _fillings(path)]
    named = sorted((names.index(name), path, at) for path, (at, _, name) in found if name in names)
    seen = sorted(
        (-samples, path, at) for path, (at, end, _) in found for (file, line), samples in looked.items()
        if file == path.name and at <= line <= end
    )  # fmt: skip
    best = next(iter(named or ([] if names else seen)), None)
    if best is None:
        return finding
    line = CodeLine(best[1].name, best[2], "", None)
    return _with_line(finding, line, f"{line.place} adds to it", f"{line.place}: {finding.fixes[0].action}")


def _looked_at(evidence: Evidence) -> dict[tuple[str, int], int]:
    """Lines in which the main thread was seen: file and line, with their samples."""
    found: dict[tuple[str, int], int] = {}
    for table in evidence.table(KIND):
        for text, held in zip(table.columns["line"], table.columns["held"].tolist(), strict=True):
            if at := AT.match(text):
                key = (Path(at["file"]).name, int(at["line"]))
                found[key] = found.get(key, 0) + held
    return found


def _sources(script: Path, looked: dict[tuple[str, int], int]) -> list[Path]:
    """The script and the files beside it that were seen to run."""
    names = dict.fromkeys([script.name, *(file for file, _ in looked)])
    return [path for name in names if (path := script.parent / name).is_file()]


def _fillings(path: Path) -> Iterator[tuple[int, int, str]]:
    """Statements that add to a container: first and last line, and its name."""
    try:
        tree = ast.parse(_text(path))
    except (ValueError, SyntaxError, RecursionError):
        return
    for node in ast.walk(tree):
        target: ast.expr | None = None
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in FILLS:
                target = value
            case ast.AugAssign(target=value, op=ast.Add()) | ast.Assign(targets=[ast.Subscript(value=value)]):
                target = value
        name = getattr(target, "attr", getattr(target, "id", ""))
        if target is not None and name:
            yield target.lineno, getattr(node, "end_lineno", target.lineno), name
