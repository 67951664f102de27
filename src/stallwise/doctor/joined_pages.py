"""Pages of one engine's metrics, each saved in a file of its own: read together, they are rates and a before and after."""

from __future__ import annotations

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact

MOST_FILES = 64  # beyond it a folder is no handful of pages that were saved by hand
MOST_BYTES = 4 << 20


def join_pages(artifacts: list[Artifact]) -> list[Artifact]:
    """The same list; pages of one process, whose counters only grew from each to the next, as one artifact in that order."""
    if not 1 < len(artifacts) <= MOST_FILES:
        return artifacts
    from stallwise.readers import serving_metrics  # a lone input needs none of it

    pages = [a for a in artifacts if _may_be_page(a) and serving_metrics.recognises(a.name, a.head)]
    order = serving_metrics.in_order([a.text() for a in pages]) if len(pages) > 1 else []
    if not order:
        return artifacts
    together = [pages[place] for place in order]
    names = {a.name for a in together}
    text = "".join(a.text().rstrip("\n") + "\n" for a in together)
    one = Artifact(" + ".join(a.name for a in together), content=text.encode())
    return [one, *(a for a in artifacts if a.name not in names)]


def _may_be_page(artifact: Artifact) -> bool:
    if artifact.typed or artifact.url or artifact.size_bytes > MOST_BYTES:
        return False
    try:
        head = artifact.head
    except UnreadableInput:
        return False  # whoever reads it says so
    return head.lstrip()[:1] not in (b"{", b"[")
