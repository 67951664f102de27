"""Cards that are hot and draw little: throttled, whenever that began."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.doctor.findings.incident import Part, Row
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.gpu_load import LOADED_SHARE
from stallwise.late import np

TABLE = "gpu.samples"
HOT_C = 85.0  # data-centre cards slow down from 85 to 90 C on
LITTLE = 0.5  # of the power limit, while busy: heat with little power is cooling that fails
NEEDED = ("temperature_c", "power_w")


def hot_cards(evidence: Evidence, hosts: dict[str, str]) -> Iterator[Row]:
    """A notice for each such card, with its numbers."""
    for table in evidence.table(TABLE):
        columns = table.columns
        if any(name not in columns for name in NEEDED):
            continue
        limit = columns.get("power_limit_w", np.full(len(table), np.nan))
        busy = columns.get("utilisation_share", np.ones(len(table))) >= LOADED_SHARE
        bad = np.flatnonzero((columns["temperature_c"] >= HOT_C) & (columns["power_w"] < LITTLE * limit) & busy)
        if len(bad):
            at = int(bad[0])
            says = (
                f"GPU {table.scope.gpu} runs at {columns['temperature_c'][at]:.0f} C and {columns['power_w'][at]:.0f} of "
                f"{limit[at]:.0f} W while busy: throttled"
            )
            host = table.scope.node or hosts.get(table.source.file, "")
            yield Row(Part.NOTICE, "hot-card", says, table.source, "", host=host, times=len(bad))
