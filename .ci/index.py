"""Compiles the indexes of causes and measures (make index)."""

from stallwise.evidence.compiled import write
from stallwise.measures import _index as measures
from stallwise.rules import _index as rules

for compiler in (rules, measures):
    write(compiler.FOLDER, compiler.build)
