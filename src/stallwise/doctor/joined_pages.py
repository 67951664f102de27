"""Pages of one engine's metrics, each saved in a file of its own: read together, they are rates and a before and after."""

from __future__ import annotations

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.readers import serving_metrics
from stallwise.readers._scrape import Scrape

MOST_FILES = 64  # beyond it a folder is no handful of pages that were saved by hand
MOST_BYTES = 4 << 20


def join_pages(artifacts: list[Artifact]) -> list[Artifact]:
    """The same list; pages of one process, whose counters only grew from each to the next, as one artifact in that order."""
    if len(artifacts) > MOST_FILES:
        return artifacts
    pages = [(scrape, a) for a in artifacts if (scrape := _page(a)) is not None]
    pages.sort(key=lambda x: (x[0].time_s, sum(x[0].counters.values())))
    together = pages if len(pages) > 1 and all(grew(a[0], b[0]) for a, b in zip(pages, pages[1:], strict=False)) else []
    if not together:
        return artifacts
    names = {a.name for _, a in together}
    text = "".join(a.text().rstrip("\n") + "\n" for _, a in together)
    one = Artifact(" + ".join(a.name for _, a in together), content=text.encode())
    return [one, *(a for a in artifacts if a.name not in names)]


def _page(artifact: Artifact) -> Scrape | None:
    """Its only page; None of anything else."""
    if artifact.typed or artifact.url or artifact.size_bytes > MOST_BYTES:
        return None
    try:
        head = artifact.head
    except UnreadableInput:
        return None  # whoever reads it says so
    if head.lstrip()[:1] in (b"{", b"[") or not serving_metrics.recognises(artifact.name, head):
        return None
    found = serving_metrics.pages(artifact.text())
    return found[0] if len(found) == 1 and found[0].counters else None


def grew(before: Scrape, after: Scrape) -> bool:
    """The same process later: the same start and model, every counter at least as high, and some higher."""
    if before.started_s != after.started_s or (before.engine, before.model) != (after.engine, after.model):
        return False
    if before.counters.keys() - after.counters.keys() or before.histograms.keys() - after.histograms.keys():
        return False
    counts = [(before.counters[w], after.counters[w]) for w in before.counters]
    for word, histogram in before.histograms.items():
        later = after.histograms[word]
        counts += [(histogram.count, later.count), *((c, later.edges.get(e, 0.0)) for e, c in histogram.edges.items())]
    return all(a <= b for a, b in counts) and any(a < b for a, b in counts)
