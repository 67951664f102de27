"""Compiles the indexes of causes and measures (make index)."""

from stallwise.causes import _index as rules
from stallwise.doctor.measures import _index as measures
from stallwise.evidence.compiled import write

for compiler in (rules, measures):
    write(compiler.FOLDER, compiler.build)
