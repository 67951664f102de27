"""Steps that can be zoomed, packed for the page: whole columns as differences, so that a million events leave a small file."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from stallwise.doctor.findings.finding import Finding
from stallwise.doctor.findings.scene import Scene
from stallwise.evidence.fact import Table
from stallwise.evidence.user_lines import is_library
from stallwise.render.colours import CLASS
from stallwise.render.phrases import place
from stallwise.render.strict_json import dumps
from stallwise.units import Unit, show

SCRIPTS = (
    "state", "words", "scenes", "colours", "layout", "view", "boxes", "links", "overview", "picture",
    "facts", "finding", "ranges", "trail", "icicle", "save", "pointer", "keys", "controls",
)  # fmt: skip
PLAIN = ("version", "track", "depth", "name", "operator", "account", "work", "count", "correlation", "facts")
SEEN_PART = 0.01  # of the step: shorter parts are left out of the table
MOST_ROWS = 40
WHICH = {"usual": "median"}  # how a step is called that was chosen so
VARINT_BITS = 7
MOST_BYTES = 2_400_000  # of all scenes: the whole report stays below three million


def timeline_parts(
    shown: Sequence[Scene], findings: Sequence[Finding] = (), labels: Sequence[str] = ()
) -> dict[str, Any] | None:
    """What the section lays out; None where no trace was read. Scenes with labels are runs: the second stands below the first."""
    if not shown:
        return None
    packed_scenes: list[str] = []
    room = MOST_BYTES
    for n, scene in enumerate(shown):
        text = _json(_scene(scene, labels[n] if labels else ""))
        room -= len(text)
        if packed_scenes and room < 0:
            break
        packed_scenes.append(text)
    scenes = tuple(shown[: len(packed_scenes)])
    first = scenes[0].table
    proofs = {i: where for i in range(len(findings)) if (where := _proofs(scenes, i))}
    data: dict[str, Any] = {
        "proofs": proofs,
        "findings": [f.cause for f in findings],
        "classes": [CLASS[word] for word in first.meta["accounts"]],
    }
    data |= {"below": 1} if labels and len(scenes) > 1 else {}
    used = np.unique(np.concatenate([s.table.columns["account"] for s in scenes])).tolist()
    return {
        "unit": first.meta["unit"],
        "places": {i: len(rows) for i, (_, rows) in proofs.items()},
        "data": Markup(f'{{"scenes":[{",".join(packed_scenes)}],{_json(data)[1:]}'),
        "label": f"Timeline of {first.meta['step']}, which took {show(first.meta['length_s'], Unit.SECOND)}",
        "legend": [(CLASS[word], word) for i, word in enumerate(first.meta["accounts"]) if i in used],
        "path": [
            f"{word} {show(seconds, Unit.SECOND)}" for word, seconds in first.meta["path"].get("seconds", {}).items()
        ],
        "rows": _rows(first),
    }


def _json(value: Any) -> str:
    """The data stands in a script element: no "<" may end it."""
    return dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _proofs(scenes: tuple[Scene, ...], finding: int) -> tuple[int, list[int]] | None:
    """The first scene that proves a finding, and its boxes there."""
    for number, scene in enumerate(scenes):
        if finding in scene.proves:
            return number, list(scene.proves[finding])
    return None


def _scene(scene: Scene, label: str = "") -> dict[str, Any]:
    table, meta = scene.table, scene.table.meta
    columns = _columns(table)
    path = meta["path"]
    return {
        "label": f"{label}: {_label(table)}" if label else _label(table),
        "source": place(table.source),
        "summary": _summary(table),
        "begin": _ns(np.array([meta["begin_s"]]))[0].item(),
        "names": meta["names"],
        "library": [i for i, name in enumerate(meta["names"]) if is_library(name)],
        "facts": meta["facts"],
        "accounts": meta["accounts"],
        "works": meta["works"],
        "tracks": meta["tracks"],
        "versions": [
            {"word": v["word"], "meaning": v["meaning"], "length": round(v["length_s"] * 1e9)} for v in meta["versions"]
        ],
        "rows": len(table),
        "columns": list(columns),
        "data": packed(list(columns.values())),
        "links": len(path.get("kind", ())),
        "path": packed(
            [np.array(path["kind"]), np.array(path["track"]), _ns(path["start_s"]), _ns(path["end_s"])] if path else []
        ),
    }


def _label(table: Table) -> str:
    meta = table.meta
    rank = f"rank {table.scope.rank}, " if table.scope.rank is not None else ""
    which = WHICH.get(meta["which"], meta["which"])
    return f"{rank}{meta['step']} ({which}), {show(meta['length_s'], Unit.SECOND)}"


def _summary(table: Table) -> str:
    meta = table.meta
    text = f"{meta['alone']:,} of {meta['events']:,} events are drawn one by one"
    if meta["merged"]:
        text += f"; {meta['merged']:,} shorter ones are merged into {meta['blocks']:,} blocks"
    if meta["left_out"]:
        text += f"; not shown: {', '.join(meta['left_out'][:6])}" + (" and more" if len(meta["left_out"]) > 6 else "")
    return text + "."


def _columns(table: Table) -> dict[str, NDArray[np.int64]]:
    c = table.columns
    start, end = _ns(c["start_s"]), _ns(c["end_s"])
    found = {key: c[key].astype(np.int64) for key in PLAIN}
    found |= {"start": start, "length": end - start, "more": _ns(c["busy_s"]) - (end - start), "idle": _ns(c["idle_s"])}
    for number in range(1, len(table.meta["versions"])):
        # The same boxes in other times: what they moved by is nearly the same for neighbours.
        moved = _ns(c[f"start_s:{number}"]) - start
        found[f"start{number}"] = moved
        found[f"length{number}"] = _ns(c[f"end_s:{number}"]) - start - moved - found["length"]
    return found


def _ns(seconds: Any) -> NDArray[np.int64]:
    return np.rint(np.asarray(seconds, np.float64) * 1e9).astype(np.int64)


def packed(columns: list[NDArray[np.int64]]) -> str:
    """Differences of neighbours, zigzag, in as many groups of seven bits as they need, as text."""
    if not columns:
        return ""
    steps = np.concatenate([np.diff(column, prepend=0) for column in columns]).astype(np.int64)
    left = np.where(steps < 0, -2 * steps - 1, 2 * steps).astype(np.uint64)
    groups = []
    more = np.ones(len(left), bool)
    while more.any():
        low = (left & np.uint64(127)).astype(np.uint8)
        left = left >> np.uint64(VARINT_BITS)
        goes_on = more & (left > 0)
        groups.append(np.where(more, low | (goes_on.astype(np.uint8) << VARINT_BITS), 0).astype(np.uint8))
        more = goes_on
    stacked = np.stack(groups, axis=1)
    width = 1 + sum((stacked[:, i] & 128 > 0).astype(np.int64) for i in range(stacked.shape[1]))
    keep = np.arange(stacked.shape[1])[None, :] < np.asarray(width)[:, None]
    return base64.b64encode(stacked[keep].tobytes()).decode()


def _rows(table: Table) -> list[tuple[str, str, str]]:
    """Where the time goes, in words, for those who cannot see the picture."""
    c, meta = table.columns, table.meta
    on = np.flatnonzero((c["track"] == 0) & (c["version"] == 0))
    parts = [(meta["names"][c["name"][i]], float(c["start_s"][i]), float(c["end_s"][i])) for i in on.tolist()]
    long = [(name, start, end - start) for name, start, end in parts if end - start >= SEEN_PART * meta["length_s"]]
    return [(name, show(start, Unit.SECOND), show(lasts, Unit.SECOND)) for name, start, lasts in long[:MOST_ROWS]]
