"""What can go wrong, and what the user should do next.

StallwiseError            anything we say to a user instead of a traceback (exit 3)
├── UnreadableInput       the bytes are not what they should be (exit 3)
├── BadRequest            the question itself makes no sense: wrong option, impossible layout (exit 2)
└── MissingExtra          an optional package is needed for this (exit 2)
"""

from __future__ import annotations


class StallwiseError(Exception):
    """A problem in the user's words, with the one thing to do next."""

    exit_code = 3

    def __init__(self, problem: str, *, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders when many ranks are read at once.
        return (_rebuild, (type(self), self.problem, self.hint))


class UnreadableInput(StallwiseError):
    """The artifact is damaged, empty or of a kind that no reader knows."""


class BadRequest(StallwiseError):
    """The request cannot be answered as asked."""

    exit_code = 2


class MissingExtra(BadRequest):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"this needs the optional package '{package}'",
            hint=f"pip install 'stallwise[{extra}]'",
        )
        self.package = package
        self.extra = extra

    def __reduce__(self) -> tuple[object, ...]:
        return (MissingExtra, (self.package, self.extra))


def _rebuild(kind: type[StallwiseError], problem: str, hint: str) -> StallwiseError:
    error = kind.__new__(kind)
    StallwiseError.__init__(error, problem, hint=hint)
    return error
