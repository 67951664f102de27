"""A diagnosis as a document: the answer, its proof, what to do, and below that everything that was seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from stallwise.doctor.findings.diagnosis import Diagnosis, State
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.evidence.fact import Fact
from stallwise.evidence.ledger import Ledger
from stallwise.render.blocks import (
    Bar,
    Bars,
    Block,
    Code,
    Column,
    Depth,
    Document,
    Group,
    Interactive,
    Line,
    Listed,
    Note,
    Tab,
    Table,
    Words,
    is_empty,
    joined,
    number,
    seconds,
    sentence,
    share,
    steps,
    table,
)
from stallwise.render.blocks import document as filled
from stallwise.render.colours import CLASS, guilty
from stallwise.render.phrases import an, category_ends, fix_saves, named_by_user, place, places, saved
from stallwise.render.verdict import (
    CATEGORY_MEANING,
    could_be,
    how_they_add_up,
    kernel_findings,
    leading_hypothesis,
    not_understood_rows,
    proof_rows,
    run_findings,
    saves,
    tree_rows,
    unexplained_rows,
    verdict,
)
from stallwise.units import Unit, show

SEEN_SHARE = 0.002  # of the whole: a smaller category is not worth a row
PLAIN_ANSWER = 0.8  # sure enough that a list of other hypotheses would only distract
MOST_REASONS = 2  # of an undecided answer, on the first screen
MOST_ALSO = 6
MOST_CAUSES = {Depth.FIRST: 5, Depth.REPORT: 10}  # that a person weighs
MOST_KERNELS = 40
MOST_LISTED = 20
MOST_FACTS = 250
MOST_SEPARATED = 8
SOURCES_SHOWN = 3


def document(diagnosis: Diagnosis, *, deep: bool = False) -> Document:
    """All of it; `deep` adds what only the page shows: pictures, the timeline, every fact."""
    run = run_findings(diagnosis)
    sick, unclear = diagnosis.state is State.SICK, diagnosis.state is State.UNCLEAR
    argued = bool(run) and (sick or leading_hypothesis(diagnosis) is run[0])
    timeline, places = _timeline(diagnosis) if deep else (None, {})
    located = {id(f): Located(i, places.get(i, 0)) for i, f in enumerate(diagnosis.findings)}
    ledger = diagnosis.ledger
    return filled(
        verdict(diagnosis),
        *_incident(diagnosis),
        steps("Contradiction", map(_line, diagnosis.contradictions), label="check"),
        _bars(diagnosis) if ledger and ledger.whole_s > 0 else None,
        steps("Your spans and gauges", named_by_user(ledger), label="yours") if ledger else None,
        steps("Not explained", unexplained_rows(diagnosis), label="rest"),
        Group(
            _argument(run[0], shortly=not sick), **located[id(run[0])].where,
            title="Why, and what to do" if sick else "What speaks for the likeliest",
        ) if argued else None,
        steps("Asked first", tree_rows(diagnosis), label="asked"),
        steps("Shown to be well" if diagnosis.healthy else "What was seen", proof_rows(diagnosis), label="seen"),
        fixes(diagnosis.limit.levers, "To go faster", "faster") if diagnosis.healthy and diagnosis.limit else None,
        _hypotheses(diagnosis, run),
        steps("Not understood", not_understood_rows(diagnosis), label="unread") if unclear else None,
        *_tried(diagnosis),
        _also(diagnosis, run[1:] if argued else run, located),
        *([timeline, _sliders(diagnosis), *_drawn(diagnosis)] if deep else []),
        _kernels(diagnosis, located),
        _question(diagnosis) if unclear and diagnosis.questions else None,
        _next(diagnosis),
        steps("About the input", [Line(n.text, place(n.source)) for n in diagnosis.notes], label="note", most=5,
              tab=Tab.EVERYTHING),
        _facts(diagnosis) if deep else None,
        listed=_listed(diagnosis, run) if deep else (),
        subject=diagnosis.subject,
        inputs=tuple(diagnosis.evidence.inputs) or ("stated facts",),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Located:
    """A finding's number, and in how many places the timeline shows it."""

    number: int
    places: int

    @property
    def where(self) -> dict[str, Any]:
        """What a group that tells it carries."""
        return {"number": self.number, "places": self.places, "slug": slug_of(self.number)}


def slug_of(number: int) -> str:
    """Of the group that tells a finding."""
    return f"finding-{number}"


def _listed(diagnosis: Diagnosis, run: list[Finding]) -> tuple[Listed, ...]:
    """All that was looked for: what fails with what it is worth, what is good to know, what passed, and parts that failed."""
    found = []
    for i, f in enumerate(diagnosis.findings[:MOST_LISTED]):
        failed = f.is_verdict or (diagnosis.state is State.SICK and f is run[0])
        worth = saved(f.gain) if f.gain and f.gain.high_s > 0 else share(f.confidence)
        where = f" · {f.scope.kernel}" if f.scope.kernel else ""
        found.append(Listed("fail" if failed else "info", f"{f.cause}{where}", worth, slug_of(i), i))
    found.sort(key=lambda entry: entry.kind)  # "fail" before "info", else as ranked
    crashed = [Listed("crashed", n.text) for n in diagnosis.notes if n.lost and not n.source.file]
    passed = [Listed("passed", cause) for cause in diagnosis.passed]
    return (*found, *crashed, *passed, *(Listed("not judged", u.cause) for u in diagnosis.unknown))


def _incident(diagnosis: Diagnosis) -> list[Block]:
    """Of several files: what happened in which order, the hosts to drain, and what is in doubt about the clocks."""
    if diagnosis.incident is None:
        return []
    from stallwise.render.documents.incident import blocks_of

    return blocks_of(diagnosis.incident)


def _tried(diagnosis: Diagnosis) -> list[Table]:
    if not diagnosis.trials:
        return []
    from stallwise.render.documents.trials import tried

    return [tried(trials, diagnosis) for trials in diagnosis.trials]


def _drawn(diagnosis: Diagnosis) -> list[Block]:
    """What took most, and all pictures."""
    from stallwise.render.pictures import figures
    from stallwise.render.tables import tables_blocks

    return [*tables_blocks(diagnosis), *figures(diagnosis)]


def _line(reason: Reason) -> Line:
    return Line(reason.text, places(reason.sources), ", ".join(str(s) for s in reason.sources))


def _bars(diagnosis: Diagnosis) -> Bars:
    """Where a step goes, and where it would end after the first fix."""
    ledger, found = diagnosis.ledger, guilty(diagnosis)
    assert ledger is not None
    whole = ledger.whole_s
    goal = whole - found.gain.expected_s if found and found.gain and found.gain.expected_s < whole else None
    rows = [
        Bar(
            c.value, seconds(s), s / whole, CLASS[c.value], category_ends(ledger, c), CATEGORY_MEANING[c],
            hot=bool(found and found.category is c),
        )
        for c, s in sorted(ledger.seconds.items(), key=lambda item: -item[1])
        if s >= SEEN_SHARE * whole
    ]  # fmt: skip
    return Bars(
        tuple(rows), seconds(whole), goal / whole if goal is not None else None,
        _after(ledger, found, goal) if found and goal is not None else "",
        f"Mean of {ledger.samples} {ledger.unit}s, {ledger.source}.", label=LABELS.get(ledger.unit, "time"),
        title=f"Where {an(ledger.unit)} goes: {show(whole, Unit.SECOND)}",
    )  # fmt: skip


LABELS = {"step": "step", "window": "window"}


def _after(ledger: Ledger, found: Finding, goal_s: float) -> Words:
    assert found.gain is not None
    how = "replayed" if found.gain.likely_s is not None else "at best"
    worst_s = ledger.whole_s - found.gain.low_s
    start = f"Dashed: where {an(ledger.unit)} would end after the first fix, {how} "
    if show(worst_s, Unit.SECOND) == show(goal_s, Unit.SECOND):
        return (start, seconds(goal_s), ".")
    return (start, seconds(goal_s), " (at worst ", seconds(worst_s), ").")


def _argument(finding: Finding, *, shortly: bool = False, depth: Depth = Depth.FIRST) -> tuple[Block, ...]:
    """Why, what to do, and what would change it. Undecided, nothing is to be fixed before the cause is known."""
    most = MOST_REASONS if shortly else 0
    below = Depth.REPORT if shortly else depth
    found: list[Block] = [
        steps("Because", map(_line, finding.because), label="why", most=most, depth=depth),
        steps("Against", map(_line, finding.against), label="but", most=most, depth=depth),
        fixes(finding.fixes, "Fix, in this order", "fix", below),
        steps("Not the cause", map(_line, finding.not_here), label="not", depth=below),
        Note(finding.avoid, title="Do not start here", label="avoid", warns=True, depth=below),
        table(
            "If it is not that",
            (Column("cause"), sentence("why it comes later", 1), sentence("check")),
            ((r.cause, r.less_likely, r.check) for r in finding.rivals), label="or", bare=True, depth=below,
        ),
        Note(
            "; ".join(finding.overturn), title="Would change this", label="unless", warns=True,
            depth=Depth.REPORT if finding.confidence >= PLAIN_ANSWER else below,
        ),
    ]  # fmt: skip
    return tuple(block for block in found if not is_empty(block))


def fixes(rows: tuple[Fix, ...], title: str, label: str, depth: Depth = Depth.FIRST) -> Table:
    """What to do, what it saves, costs and risks."""
    return table(
        title,
        (number("#"), sentence("do this"), Column("worth"), sentence("costs", 2), sentence("risk", 1)),
        ((str(n), *_action(f), f.cost, f.risk) for n, f in enumerate(rows, 1)),
        label=label,
        bare=True,
        depth=depth,
    )


def _action(fix: Fix) -> tuple[Words, Words]:
    """What to do, and the seconds that it saves; a worth in words stands behind the action, where it has room."""
    if fix.gain is not None and fix.gain.high_s > 0:
        return fix.action, fix_saves(fix)
    return (f"{fix.action}  ({fix.worth})" if fix.worth else fix.action), ""


def _also(diagnosis: Diagnosis, rest: list[Finding], located: dict[int, Located]) -> Group:
    """Further findings, a row each until they are opened."""
    found = [_folded(f, diagnosis.ledger, located) for f in rest]
    first = [f for f in found if f.depth is Depth.FIRST]
    deeper = [f for f in found if f.depth is not Depth.FIRST]
    over = [replace(f, depth=Depth.REPORT) for f in first[MOST_ALSO:]]
    return Group((*first[:MOST_ALSO], *over, *deeper), title="Also seen", label="also")


def _folded(f: Finding, ledger: Ledger | None, located: dict[int, Located]) -> Group:
    scope = str(f.scope) if f.scope.kernel is None else ""
    badges = (f.cause, share(f.confidence), scope, "optional" if f.optional else "", _left(f, ledger))
    note = (Note(f.summary, depth=Depth.PAGE),) if f.summary else ()
    return Group(
        (*note, *_argument(f, depth=Depth.PAGE)), tuple(b for b in badges if b), folded=True, title=f.headline,
        depth=Depth.REPORT if f.recognised else Depth.FIRST, **located[id(f)].where,
    )  # fmt: skip


def _left(finding: Finding, ledger: Ledger | None) -> Words:
    """What a further finding adds, once those above it have taken their part."""
    return saves(finding.gain, ledger)


def _kernels(diagnosis: Diagnosis, located: dict[int, Located]) -> Group:
    rows = [
        Group(
            tuple(_folded(f, None, located) for f in found), (found[0].headline,), folded=True, is_open=n < 3,
            title=name, depth=Depth.REPORT,
        )
        for n, (name, found) in enumerate(list(kernel_findings(diagnosis).items())[:MOST_KERNELS])
    ]  # fmt: skip
    return Group(tuple(rows), title="Kernels", depth=Depth.REPORT, slug="kernels", tab=Tab.KERNELS)


def _hypotheses(diagnosis: Diagnosis, run: list[Finding]) -> Group:
    """How the probability is shared: on the first screen only where the answer is not plain."""
    plain_answer = diagnosis.healthy or (diagnosis.state is State.SICK and run[0].confidence >= PLAIN_ANSWER)
    found = could_be(diagnosis, MOST_CAUSES[Depth.REPORT])
    columns = (
        Column("cause"),
        Column("probability", right=True, meter=True),
        sentence("for", 1),
        sentence("against", 1),
    )
    argued = {f.cause for f in run}  # says it above
    rows = (
        (h.cause, share(h.probability), "" if h.cause in argued else _texts(h.because), _texts(h.against))
        for h in found
    )
    tree = steps("", diagnosis.tree, ordered=True, depth=Depth.PAGE)
    return Group(
        (
            table("", columns, rows, label="maybe", inline=True, most=MOST_CAUSES[Depth.FIRST] - 1,
                  note="" if plain_answer else how_they_add_up(diagnosis)),
            Group((tree,), folded=True, title="How the questions were asked", depth=Depth.PAGE) if diagnosis.tree else Note(""),
        ) if found else (),
        title="What it could be", label="maybe", depth=Depth.REPORT if plain_answer else Depth.FIRST,
        tab=Tab.WHY if diagnosis.state is State.UNCLEAR else Tab.EVERYTHING,
    )  # fmt: skip


def _texts(reasons: tuple[Reason, ...]) -> Words:
    return joined((r.text for r in reasons[:SOURCES_SHOWN]), "; ")


def _question(diagnosis: Diagnosis) -> Group:
    asked: list[Block] = []
    for q in diagnosis.questions:
        asked += [
            Note(f"{q.text} ({len(q.choices)} answers to choose from: add --ask)", label="ask"),
            steps("", (c.text for c in q.choices), ordered=True, depth=Depth.REPORT),
            Note(
                f'It separates {", ".join(q.separates)}. Answer it with --ask, or with --answer "...".',
                depth=Depth.PAGE,
            ),
        ]
    return Group(tuple(asked), title="One question", label="ask", slug="question")


def _next(diagnosis: Diagnosis) -> Group:
    rows = []
    for n, step in enumerate(diagnosis.next):
        named, more = step.separates[:MOST_SEPARATED], len(step.separates) - MOST_SEPARATED
        separates = f"Separates: {', '.join(named)}{f' and {more} more' if more > 0 else ''}." if named else ""
        cost = f"Costs: {step.capture.cost}. " if step.capture.cost else ""
        depth = Depth.FIRST if n == 0 else Depth.REPORT
        rows.append(Code(step.capture.command, step.capture.artifact, f"{cost}{separates}", label="next", depth=depth))
    return Group(tuple(rows), title="Capture next", label="next", slug="next")


def _timeline(diagnosis: Diagnosis) -> tuple[Interactive | None, dict[int, int]]:
    from stallwise.render.timeline import SCRIPTS, timeline_parts

    values = timeline_parts(diagnosis.scenes, diagnosis.findings)
    return (Interactive("timeline", SCRIPTS, values, tab=Tab.TIMELINE), values["places"]) if values else (None, {})


def _sliders(diagnosis: Diagnosis) -> Interactive | None:
    from stallwise.render.sliders import SCRIPTS, sliders_parts

    values = sliders_parts(diagnosis)
    return Interactive("sliders", SCRIPTS, values, tab=Tab.TIMELINE) if values else None


def _facts(diagnosis: Diagnosis) -> Table:
    facts = [f for found in diagnosis.evidence.facts.values() for f in found]
    facts.sort(key=lambda f: (f.scope.kernel is not None, f.quantity.name, str(f.scope)))
    left = len(facts) - MOST_FACTS
    more = f' of {len(facts)}; a notebook shows all: diagnosis.to_pandas("facts")' if left > 0 else ""
    return table(
        "Every number and where it comes from",
        ("quantity", number("value"), "what it is", "of", number("samples"), "source"),
        (_fact(f) for f in facts[:MOST_FACTS]),
        folded=f"{min(len(facts), MOST_FACTS)} facts{more}",
        depth=Depth.PAGE,
        tab=Tab.EVERYTHING,
    )


def _fact(fact: Fact) -> tuple[Words, ...]:
    ends = ""
    if fact.low is not None and fact.high is not None and fact.quantity.unit is not Unit.TEXT:
        ends = f"from {show(fact.low, fact.quantity.unit)} to {show(fact.high, fact.quantity.unit)}"
    note = "; ".join(part for part in (ends, fact.note) if part)
    value: Any = str(fact)
    return (fact.quantity.name, f"{value} ({note})" if note else value, fact.quantity.meaning, str(fact.scope),
            str(fact.samples), str(fact.source))  # fmt: skip
