"""The line of the user's code that a finding is about: the one that holds most of the stacks sampled in its part of the step."""

from __future__ import annotations

from dataclasses import replace

from stallwise.doctor.findings.finding import Finding, Reason
from stallwise.doctor.findings.step_facts import percent
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Source
from stallwise.evidence.ledger import Category
from stallwise.evidence.user_lines import (
    BESIDE,
    COLLECTION,
    COMPILING,
    KIND,
    LOADER_WORKER,
    LOADS,
    CodeLine,
    line_of_most,
)

# Where the host stands while a category grows, the surest first. Time between stages belongs to the loop's own lines; of workers and
# a main thread that waits for them those who work are looked at.
STAGES_OF: dict[Category | str, tuple[tuple[str, ...], ...]] = {
    Category.INPUT_WAIT: ((LOADER_WORKER,), (LOADS,)),
    Category.CHECKPOINT: (("checkpoint",), ("checkpoint", BESIDE)),
    Category.HOST_WAIT: ((BESIDE,), (BESIDE, COMPILING)),
    "recompilation": ((COMPILING,),),
    "python-gc-pauses": ((COLLECTION,),),  # the lines that allocate what is collected
}


def with_code_line(finding: Finding, evidence: Evidence) -> Finding:
    """The finding with its line in headline, first fix and reasons; unchanged where no line stands out."""
    if finding.category is None or finding.code_line is not None or finding.scope.kernel is not None:
        return finding
    rank = finding.scope.rank
    tables = [t for t in evidence.table(KIND) if rank is None or t.scope.rank in (None, rank)]
    known = {stage for table in tables for stage in table.meta["total"]}
    anywhere = (tuple(known - {LOADS, LOADER_WORKER, COLLECTION}),)
    own = STAGES_OF.get(finding.cause) or STAGES_OF.get(finding.category, anywhere)
    ways = anywhere if known <= {BESIDE, COLLECTION} and finding.cause not in STAGES_OF else own
    line = next((line for stages in ways if (line := line_of_most(tables, stages)) is not None), None)
    return finding if line is None else _named(finding, line, tables[0].source)


def _named(finding: Finding, line: CodeLine, source: Source) -> Finding:
    what = "the wait" if finding.category is Category.INPUT_WAIT else "this time"
    part = percent(line.samples / line.of)
    says = f"{line} holds {part} of {what} ({line.samples} of {line.of} stack samples)"
    headline, fixes = finding.headline, finding.fixes
    if line.place not in headline:
        headline = f"{headline.removesuffix('.')}, {part} of it in {line}."
    if fixes and all(line.place not in fix.action for fix in fixes):
        fixes = (replace(fixes[0], action=f"{fixes[0].action}; the line is {line.place}"), *fixes[1:])
    return replace(
        finding, code_line=line, headline=headline, fixes=fixes, because=(Reason(says, (source,)), *finding.because)
    )
