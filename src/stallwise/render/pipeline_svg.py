"""The picture of a pipeline schedule as SVG, for the page and for reports."""

from __future__ import annotations

from html import escape
from typing import Any

COLORS = {"F": "#4c8bf5", "B": "#f2994a", "BW": "#eb5757", "W": "#9b8afb"}
NAMES = {"F": "forward", "B": "input gradient", "BW": "backward", "W": "weight gradient"}
WIDTH, ROW, MARGIN = 960, 22, 44
SMALLEST_LABEL = 12  # pixels: narrower boxes carry no number


def to_svg(devices: list[list[dict[str, Any]]], step_s: float, *, title: str = "Pipeline schedule") -> str:
    """One lane per device; gaps are the bubble."""
    height = ROW * len(devices) + 44
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="11">',
        f"<title>{escape(title)}</title>",
    ]
    scale = (WIDTH - MARGIN - 4) / step_s if step_s else 0.0
    for number, boxes in enumerate(devices):
        top = ROW * number + 4
        parts.append(f'<text x="2" y="{top + 14}" fill="currentColor">stage {number}</text>')
        parts.append(
            f'<rect x="{MARGIN}" y="{top}" width="{WIDTH - MARGIN - 4}" height="{ROW - 4}" fill="#8882" rx="2"/>'
        )
        parts += [_box(box, top, scale) for box in boxes]
    parts.append(_legend(ROW * len(devices) + 24))
    return "".join([*parts, "</svg>"])


def _box(box: dict[str, Any], top: int, scale: float) -> str:
    left = MARGIN + box["start_s"] * scale
    width = max(0.5, (box["end_s"] - box["start_s"]) * scale)
    height = (ROW - 4) / len(box["passes"])
    shapes = []
    for place, item in enumerate(box["passes"]):
        label = f"{NAMES[item['kind']]} of microbatch {item['microbatch']}, stage {item['stage']}"
        y = top + place * height
        shapes.append(
            f'<rect x="{left:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" fill="{COLORS[item["kind"]]}" '
            f'stroke="#fff" stroke-width="0.4"><title>{label}</title></rect>'
        )
        if width >= SMALLEST_LABEL and len(box["passes"]) == 1:
            shapes.append(
                f'<text x="{left + width / 2:.2f}" y="{top + 13}" fill="#fff" text-anchor="middle" '
                f'font-size="9" pointer-events="none">{item["microbatch"]}</text>'
            )
    return "".join(shapes)


def _legend(y: int) -> str:
    parts = []
    x = MARGIN
    for kind, name in NAMES.items():
        parts.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{COLORS[kind]}"/>')
        parts.append(f'<text x="{x + 14}" y="{y}" fill="currentColor">{name}</text>')
        x += 26 + 7 * len(name)
    return "".join(parts)
