"""Operations of a job as Parquet columns (`rank`, `stage`, `step`, kind, start, duration): with the extra `parquet`."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.errors import MissingExtra, UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.reading import Cell, Rows
from stallwise.readers._operation_columns import operations_in

FORMAT = "Parquet table of operations"
EXCLUSIVE = True
MAGIC = b"PAR1"


def recognises(name: str, head: bytes) -> bool:
    """Parquet signs its files."""
    return head[:4] == MAGIC


def read(artifact: Artifact) -> Iterator[Item]:
    """One table of operations."""
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingExtra("Parquet", "parquet") from error
    with artifact.open() as stream:
        table = parquet.read_table(stream)
    cells: tuple[list[Cell], ...] = tuple(
        [float(v) if isinstance(v, (int, float)) else v if v is None else str(v) for v in column.to_pylist()]
        for column in table.columns
    )
    found = operations_in(Rows(tuple(table.column_names), cells, list(range(1, table.num_rows + 1))), artifact.name)
    if found is None:
        raise UnreadableInput(f"{artifact.name}: no columns of operations (rank or stage, step, kind, start, duration)")
    yield found
