"""The figures of `plan validate` for a terminal."""

from __future__ import annotations

from typing import Any

USUAL_SHARE = 0.9  # that an interval shall hold, where a kind of table does not say another
MOST_SHOWN = 12  # rows not predicted, each with what it lacks


def to_text(figures: dict[str, Any], *, rows: bool = False) -> str:
    """A line over all, a line per source, and on request a line per row."""
    inside = f"inside {figures.get('interval_share', USUAL_SHARE):.0%}"
    lines = [
        f"{figures['kind']}: {figures['rows_predicted']} of {figures['rows']} rows predicted, {figures['predicted']} numbers of them",
        f"  {'':38} {'each':>5} {'median':>8} {'mean':>8} {'bias':>8} {inside:>11}",
        _line("all", figures),
    ]
    by = figures.get("by_publisher", {})
    if by.get("publishers", 0) > 1:
        held = by["inside_interval_share"]
        lines.append(
            f"  every publisher once: {by['publishers']} publishers, mean {_pct(by['mean_abs_pct'])}"
            + (f", inside {held:.0%}" if held is not None else "")
        )
        lines += [_line(name, part) for name, part in by["each"].items()]
        lines.append("")
    lines += [_line(name, part) for name, part in figures["by_source"].items()]
    for column in ("family", "answer", "metric", "model", "gpu", "engine"):
        lines += _parts(figures.get(f"by_{column}", {}))
    if (pairs := figures.get("pairs")) and pairs["pairs"]:
        lines += [
            "",
            f"  of {pairs['pairs']:,} pairs of one job's layouts, {pairs['right_order_share']:.0%} in the right order",
        ]
    if (refused := figures.get("false_does_not_fit_share")) is not None:
        lines += ["", f"  of the runs that ran, {refused:.1%} would have been said not to fit"]
    if assumed := figures.get("assumed"):
        lines += ["", "  predicted over everything that may be meant, where rows do not say:"]
        lines += [f"    {count:>5} rows: {what}" for what, count in assumed.items()]
    if left := figures.get("not_predicted"):
        lines += [
            "",
            f"  {len(left)} rows not predicted:",
            *(f"    {row}: {why}" for row, why in list(left.items())[:MOST_SHOWN]),
        ]
    if rows:
        lines += ["", *(_row(row) for row in figures["per_row"])]
    return "\n".join(lines)


def _parts(parts: dict[str, Any]) -> list[str]:
    """Figures by metric, or by metric and something else."""
    lines = [""] if parts else []
    for name, part in parts.items():
        if "predicted" in part:
            lines.append(_line(name, part))
        else:
            lines += [_line(f"{name}  {inner}", figures) for inner, figures in part.items() if figures["predicted"]]
    return lines


def _line(name: str, part: dict[str, Any]) -> str:
    cells = [_pct(part[key]) for key in ("median_abs_pct", "mean_abs_pct", "bias_pct")]
    inside = part["inside_interval_share"]
    text = f"  {name[:38]:38} {part['predicted']:>5} " + " ".join(f"{cell:>8}" for cell in cells)
    text += f" {'-' if inside is None else f'{inside:.0%}':>11}"
    if "worst_abs_points" in part:
        text += f"   mean {part['mean_abs_points']:.2f}, worst {part['worst_abs_points']:.2f} points"
    return text


def _row(row: dict[str, Any]) -> str:
    if row["predicted"] is None:
        return f"  {row['row_id']:10} {row['source'][:30]:30} not predicted: {row['note']}"
    error = f"{row['error_points']:+.2f} points" if "error_points" in row else _pct(row["error_pct"])
    measured = "?" if row["measured"] is None else f"{row['measured']:.6g}"
    return f"  {row['row_id']:10} {row['source'][:30]:30} {row['predicted']:.6g} against {measured}  {error}"


def _pct(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1f}%" if value < 0 else f"{value:.1f}%"
