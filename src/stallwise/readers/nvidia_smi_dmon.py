"""`nvidia-smi dmon`: one line per GPU and second; columns depend on -s and on the driver, so the header names them."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.readers._cells import whole_of
from stallwise.readers._gpu_samples import GpuSamples, gpu_words, number, seconds

FORMAT = "nvidia-smi dmon"
CAPTURE = "nvidia-smi dmon -s pucvmet -d 1 > dmon.txt"


def recognises(name: str, head: bytes) -> bool:
    """A comment line that names gpu and at least one column only dmon has."""
    for line in head[:65536].decode("utf-8", errors="replace").splitlines()[:100]:
        words = line.lower().split()
        if (
            len(words) > 2
            and words[0] in ("#", "#date")
            and "gpu" in words[:5]
            and len(gpu_words()["dmon"].keys() & set(words)) >= 2
        ):
            return True
    return False


def read(artifact: Artifact) -> Iterator[Item]:
    """One table of samples per GPU."""
    samples = GpuSamples(artifact.name)
    header: list[str] = []
    for line_number, line in enumerate(artifact.lines(), 1):
        cells = line.split()
        if line.startswith("#"):
            words = [w.lower() for w in line.lstrip("#").split()]
            if "gpu" in words:
                header = words
            continue
        if not header or len(cells) != len(header):
            continue
        row = dict(zip(header, cells, strict=True))
        if not row["gpu"].isdecimal() or whole_of(row["gpu"]) is None:
            continue
        values = {}
        if "date" in row or "time" in row:
            values["time_s"] = seconds(f"{row.get('date', '20000101')} {row.get('time', '')}")
        for key, (column, scale) in gpu_words()["dmon"].items():
            if key in row:
                values[column] = number(row[key]) * scale
        _violations(row, values)
        samples.add(int(row["gpu"]), values, line_number)
    yield from samples.items()


def _violations(row: dict[str, str], values: dict[str, float]) -> None:
    """Columns pviol and tviol: percent of time, or yes/no, in which power or heat held the clocks down."""
    mask, known = 0, False
    for key, bit in (("pviol", 0x4), ("tviol", 0x20)):
        if key in row:
            value = number(row[key])
            known = known or value == value
            mask |= bit if value == value and value > 0 else 0
    if known:
        values["reasons"] = float(mask)
