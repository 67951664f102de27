"""The line of the user's code that a finding is about: the one that holds most of the stacks sampled in its part of the step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from stallwise.doctor.findings.finding import Finding, Reason
from stallwise.doctor.findings.step_facts import percent
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Source, Table
from stallwise.evidence.ledger import Category
from stallwise.evidence.user_lines import BESIDE, KIND, LOADER_WORKER, CodeLine, as_code_line

HOLDS = 0.5  # of the samples: a line with less is one of several
FEWEST = 8  # samples: a share of fewer is off by a sixth and more
LOADS = ("batch_wait",)
# Where the host stands while a category grows. Time between stages belongs to the loop's own lines.
STAGES_OF = {
    Category.INPUT_WAIT: LOADS,
    Category.CHECKPOINT: ("checkpoint", BESIDE),
    Category.HOST_WAIT: (BESIDE,),
}


@dataclass(slots=True)
class _Held:
    """Samples by line: in the line itself, in it or below it, and how deep it stands."""

    of: int = 0
    own: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    depth: dict[str, int] = field(default_factory=dict)

    def add(self, table: Table, stages: Collection[str]) -> None:
        """The rows of these stages."""
        columns = [table.columns[name].tolist() for name in ("stage", "line", "own", "held", "depth")]
        self.of += sum(count for stage, count in table.meta["total"].items() if stage in stages)
        for stage, line, own, held, depth in zip(*columns, strict=True):
            if stage in stages:
                self.own[line] += own
                self.held[line] += held
                self.depth[line] = max(self.depth.get(line, 0), depth)

    def most(self) -> CodeLine | None:
        """The innermost line of most samples, or else the deepest that most of them pass."""
        if self.of < FEWEST:
            return None
        innermost, samples = max(self.own.items(), key=lambda item: (item[1], item[0]), default=("", 0))
        if samples >= HOLDS * self.of:
            return as_code_line(innermost, samples, self.of)
        wide = [line for line, count in self.held.items() if count >= HOLDS * self.of and self.depth[line] > 0]
        deepest = max(wide, key=lambda line: (self.depth[line], self.held[line], line), default="")
        return as_code_line(deepest, self.held[deepest], self.of) if deepest else None


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
    wanted: Collection[str] = known - {*LOADS, LOADER_WORKER}
    if category is Category.INPUT_WAIT and LOADER_WORKER in known:
        wanted = (LOADER_WORKER,)  # the main thread only waits: who makes the batch is slow
    elif known != {BESIDE}:
        wanted = STAGES_OF.get(category, wanted)
    held = _Held()
    for table in tables:
        held.add(table, wanted)
    return held.most()


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
