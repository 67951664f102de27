"""Compiles the indexes of causes and measures (make index)."""

from stallwise.causes import _index as rules
from stallwise.evidence.compiled import write
from stallwise.measures import _index as measures

for compiler in (rules, measures):
    write(compiler.FOLDER, compiler.build)
