"""One line of text: what the program said, and what stood in front of it."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.evidence.fact import Scope, Source

NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Line:
    """A message with its row: who said it, when and how loudly, as far as the line tells."""

    number: int  # of the file, from 1
    text: str  # without colour, carrier and prefix
    file: str = ""
    time_s: float = NAN  # since New Year, or since midnight where the line has no date; NaN without a clock
    boot_s: float = NAN  # since the machine started, where the kernel says so
    level: str = ""  # debug, info, warning, error, or nothing
    rank: int | None = None
    node: str | None = None
    gpu: int | None = None
    logger: str = ""
    place: str = ""  # the source file and line of the program that printed it
    pid: int | None = None

    @property
    def source(self) -> Source:
        """Where to look."""
        return Source(self.file, f"line {self.number}")

    @property
    def scope(self) -> Scope:
        """Whose line it is."""
        return Scope(rank=self.rank, node=self.node, gpu=self.gpu)
