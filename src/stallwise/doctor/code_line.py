"""The line of the user's code that a finding is about: the one that holds most of the stacks sampled in its part of the step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stallwise.doctor.findings.finding import Finding, Reason
from stallwise.doctor.findings.step_facts import percent
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Source, Table
from stallwise.evidence.ledger import Category
from stallwise.evidence.user_lines import BESIDE, KIND, LOADER_WORKER, LOADS, CodeLine, line_of_most

# Where the host stands while a category grows, the surest first. Time between stages belongs to the loop's own lines.
STAGES_OF = {
    Category.INPUT_WAIT: (
        (LOADER_WORKER,),
        (LOADS,),
    ),  # of workers and a main thread that waits for them, those who work
    Category.CHECKPOINT: (("checkpoint",), ("checkpoint", BESIDE)),
    Category.HOST_WAIT: ((BESIDE,),),
}


def with_code_line(finding: Finding, evidence: Evidence) -> Finding:
    """The finding with its line in headline, first fix and reasons; unchanged where no line stands out."""
    if finding.category is None or finding.code_line is not None or finding.scope.kernel is not None:
        return finding
    rank = finding.scope.rank
    tables = [t for t in evidence.table(KIND) if rank is None or t.scope.rank in (None, rank)]
    line = line_in(tables, finding.category)
    return finding if line is None else _named(finding, line, tables[0].source)


def line_in(tables: Sequence[Table], category: Category) -> CodeLine | None:
    """The line that holds most samples of the category's stages; of all samples where nothing is known of stages."""
    known = {stage for table in tables for stage in table.meta["total"]}
    anywhere = (known - {LOADS, LOADER_WORKER},)
    ways = anywhere if known == {BESIDE} else STAGES_OF.get(category, anywhere)
    return next((line for stages in ways if (line := line_of_most(tables, stages)) is not None), None)


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
