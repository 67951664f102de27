"""What must never be shown to strangers, whoever wrote it: keys, tokens, lines of code, and names that only one firm uses.

A name is public when our own pages, tables and books use it; every other name of a class or a model may be somebody's own.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from stallwise.physics.specs.models import model_names

# Keys by the marks that their issuers give them, and by the looks of random letters.
KEY = re.compile(
    r"\b(?:hf|sk|pk|rk|gh[pousr]|github_pat|glpat|xox[abprs]|nvapi|dop_v1|npm|pypi|AIza|ya29|wandb_v\d)[-_.]?[\w.-]{16,}"
    r"|\b(?:AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{12,}\b"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|-----BEGIN [A-Z ]{3,40}-----"
    r"|\b[0-9a-fA-F]{32,}\b"
    r"|(?<![\w/.:<-])(?=[A-Za-z+/]{0,60}[0-9])(?=[a-z0-9+/]{0,60}[A-Z])(?=[A-Z0-9+/]{0,60}[a-z])[A-Za-z0-9+/]{28,}={0,2}(?![\w:<])"
)
# "WANDB_API_KEY=...", "password: ...", "Authorization: Bearer ..."; a number is a count, not a secret.
KEYED = re.compile(
    r"(\b[\w-]{0,40}(?:key|token|secret|password|passwd|pwd|credentials?|authorization|cookie|bearer)[\"']?(?:\s{0,3}[:=]\s{0,3}|\s)"
    r"(?:bearer\s)?)(?![\d.,]+\b)(\"[^\"]{4,}\"|'[^']{4,}'|(?=[^\s,;)]*[\d_/+=-])[^\s,;)\"']{8,})",
    re.IGNORECASE,
)
# The line of a program that a traceback shows, after the place where it stands.
CODE_LINE = re.compile(
    r"(\bcode-\d+(?:, line \d+)?(?:, in \S+)?:\s)(?=\s*(?:return|raise|with|for|if|assert|await|yield|del)\b|\S*[=(\[.]|\S+ =)(.+)"
)
SHORT_IPV6 = re.compile(
    r"(?<![\w.])(?=[0-9a-f:]{0,38}\d)(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,6})?::(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,6})?(?![\w:])",
    re.IGNORECASE,
)
# TwoHumps or more, standing alone: inside a kernel's name it belongs to a library.
CLASS = re.compile(r"(?<![\w:<>.,/$-])(?:[A-Z]+[a-z0-9]+){2,}[A-Z]*\d{0,3}(?![\w:<>/])")
MODEL = re.compile(
    r"(?<![\w./-])[A-Za-z][\w.]{0,40}(?:-[\w.]{1,40}){0,4}-\d{1,4}(?:\.\d{1,2})?[bB](?:-[\w.]{1,30}){0,4}(?![\w/-])"
)
_PUBLIC_ENDINGS = ("Error", "Exception", "Warning", "Interrupt")
_WORD = re.compile(r"(?:[A-Z]{1,40}[a-z0-9]{1,40}){2,20}[A-Z]{0,40}\d{0,3}")
_PAGES = (
    "stallwise.causes",
    "stallwise.readers.text",
    "stallwise.evidence",
    "stallwise.readers",
    "stallwise.doctor.measures",
    "stallwise.doctor.findings",
    "stallwise.render",
)


def is_public_class(name: str) -> bool:
    """Whether a stranger may read this name."""
    return name.endswith(_PUBLIC_ENDINGS) or name in _public_names()


def is_public_model(name: str) -> bool:
    """A model that the catalogue knows, in any of its sizes and versions."""
    plain = name.lower().replace("_", "-")
    return any(plain.startswith(known) or known.startswith(plain) for known in _known_models())


@cache
def _known_models() -> frozenset[str]:
    return frozenset(name.lower() for name in model_names())


@cache
def _public_names() -> frozenset[str]:
    """Every such word in the pages and tables of this package."""
    found: set[str] = set()
    for package in _PAGES:
        for text in _texts(files("stallwise").joinpath(*package.split(".")[1:])):
            found.update(_WORD.findall(text))
    return frozenset(found)


def _texts(folder: Traversable) -> list[str]:
    found: list[str] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _texts(entry)
        elif entry.name.endswith((".py", ".toml")):
            found.append(entry.read_text(encoding="utf-8"))
    return found
