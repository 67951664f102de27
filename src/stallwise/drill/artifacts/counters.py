"""Nsight Compute, `--page raw --csv`: one wide row a kernel."""

from __future__ import annotations

from collections.abc import Mapping

from stallwise.drill import rows

COLUMNS = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size",
           "Grid Size", "Device", "CC")  # fmt: skip
COUNTERS = {row["word"]: (row["counter"], row["unit"]) for row in rows("artifacts/counters.tsv")}


def raw_csv(capability: str, kernels: Mapping[str, Mapping[str, float]]) -> str:
    """Kernels by name, counters by short word."""
    used = [w for w in COUNTERS if any(w in values for values in kernels.values())]
    head = [*COLUMNS, *(COUNTERS[w][0] for w in used)]
    lines = [head, [*[""] * len(COLUMNS), *(COUNTERS[w][1] for w in used)]]
    for number, (kernel, values) in enumerate(kernels.items()):
        block, grid = f"({values['block']:.0f}, 1, 1)", f"({values['grid']:.0f}, 1, 1)"
        row = [str(number), "4242", "bench", "127.0.0.1", kernel, "1", "7", block, grid, "0", capability]
        lines.append(row + [f"{values[w]:.6g}" if w in values else "" for w in used])
    return "".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in lines)
