"""Compiles the indexes of causes and measures, and what type checkers are to know of the catalogue (make index)."""

from stallwise.causes import _index as rules
from stallwise.doctor.measures import _index as measures
from stallwise.evidence import catalog
from stallwise.evidence.compiled import write

for family in catalog.FAMILIES:
    (catalog.FOLDER / f"{family}.pyi").write_text(catalog.stub(family), encoding="utf-8")
for compiler in (rules, measures):
    write(compiler.FOLDER, compiler.build)
