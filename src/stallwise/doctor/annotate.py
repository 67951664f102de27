"""Findings as stretches of the trace they speak of: where each account's time lies, and which finding claims it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stallwise.doctor.findings.annotation import Slice
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.findings.finding import Finding
from stallwise.doctor.gather import artifacts_of, read_artifact
from stallwise.doctor.measures._step_index import StepIndex, step_index
from stallwise.errors import BadRequest, StallwiseError
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.timeline import Timeline
from stallwise.units import Unit, show

MOST_SLICES = 20_000  # a track: longest first; a viewer needs no more
STEPS, LEDGER = "steps", "where the time goes"


def annotate(diagnosis: Diagnosis, paths: Sequence[str]) -> tuple[Artifact, list[Slice]]:
    """The trace that the first finding speaks of, and our tracks for it."""
    timelines = _timelines(paths)
    if not timelines:
        raise BadRequest(
            "there is no trace to annotate", hint="give a profiler trace; of operations of many ranks -o merged.json.gz"
        )
    first = diagnosis.first
    rank = first.scope.rank if first else None
    artifact, timeline = next(((a, t) for a, t in timelines if t.scope.rank == rank), timelines[0])
    index = step_index(timeline)
    slices = _steps(index) + _categories(index)
    for finding in diagnosis.findings:
        slices += _of_finding(finding, index)
    return artifact, _on_clock(slices, timeline)


def _timelines(paths: Sequence[str]) -> list[tuple[Artifact, Timeline]]:
    found = []
    for artifact in artifacts_of(paths):
        try:
            _, items = read_artifact(artifact, keep_timelines=True)
        except StallwiseError:
            continue  # the diagnosis has said so already
        found += [(artifact, item) for item in items if isinstance(item, Timeline)]
    return found


def _on_clock(slices: list[Slice], timeline: Timeline) -> list[Slice]:
    """From seconds since the first event to the numbers that the file itself uses."""
    base_ns = timeline.properties.get("baseTimeNanoseconds")
    base_s = base_ns * 1e-9 if isinstance(base_ns, (int, float)) else 0.0
    shift = timeline.origin_s - base_s
    return [Slice(s.track, s.name, s.start_s + shift, s.length_s, s.says) for s in slices]


def _steps(index: StepIndex) -> list[Slice]:
    boundaries = index.windows.device
    names = index.windows.labels or tuple(f"{index.windows.unit} {i}" for i in range(len(boundaries) - 1))
    return [
        Slice(STEPS, name, float(a), float(b - a))
        for name, a, b in zip(names, boundaries[:-1], boundaries[1:], strict=False)
    ]  # fmt: skip


def _categories(index: StepIndex) -> list[Slice]:
    found = []
    for category, spans in index.categories.items():
        order = np.sort(np.argsort(-spans.length_s, kind="stable")[:MOST_SLICES])
        found += [
            Slice(LEDGER, category.value, float(spans.start[i]), float(spans.length_s[i])) for i in order.tolist()
        ]
    return sorted(found, key=lambda s: s.start_s)


def _of_finding(finding: Finding, index: StepIndex) -> list[Slice]:
    """The stretches of the account that a finding claims; the whole where it claims none."""
    spans = index.categories.get(finding.category) if finding.category else None
    says = {
        "cause": finding.cause,
        "confidence": f"{finding.confidence:.0%}",
        "because": "; ".join(r.text for r in finding.because[:3]),
        "fix": finding.fixes[0].action if finding.fixes else "",
    }
    if finding.gain:
        low, high = (show(s, Unit.SECOND) for s in (finding.gain.low_s, finding.gain.high_s))
        says["worth"] = f"{low} to {high} a {index.windows.unit}"
    track = f"{finding.cause} {finding.scope}".strip()
    if spans is None or not len(spans):
        whole = index.whole
        return [Slice(track, finding.headline, float(whole.start[0]), float(whole.length_s[0]), says)]
    longest = np.sort(np.argsort(-spans.length_s, kind="stable")[:MOST_SLICES])
    return [
        Slice(track, finding.headline, float(spans.start[i]), float(spans.length_s[i]), says) for i in longest.tolist()
    ]
