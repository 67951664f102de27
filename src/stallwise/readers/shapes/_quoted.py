"""Lines that a mail or a page quotes, set flush, and the body of a mail."""

from __future__ import annotations

from collections.abc import Sequence

from stallwise.evidence.artifact import Artifact
from stallwise.readers._patterns import document, patterns

LONGEST = 64 << 20  # bytes of a mail
START = 1 << 14  # bytes in which its fields end
FEWEST_FIELDS = 2  # a note may begin with "From:", a mail says when or to whom as well
MOST_QUOTED = 1 << 18  # bytes: people paste pages
MOSTLY = 0.5  # of the lines of a page that quotes something
QUOTES = (">", "    ")
DAMAGED = (LookupError, ValueError, TypeError, AttributeError)  # what the parser of mails raises on what is none
_P = patterns("unwrap")
_FIELDS = document("shapes/envelopes")["mail"]


def quoted_in(artifact: Artifact) -> list[str] | None:
    """The page with what it quotes or indents set flush."""
    lines = artifact.lines() if len(artifact.head) <= MOST_QUOTED else []
    return next((unquoted for mark in QUOTES if (unquoted := _unquoted(lines, mark)) is not None), None)


def _unquoted(lines: Sequence[str], mark: str) -> list[str] | None:
    """None where quoted lines are not most of it."""
    unquoted, shown, joined, inside = list(lines), 0, 0, False
    before = ""
    for at, line in enumerate(lines):
        if line.startswith(mark):
            inside = inside or not mark.isspace() or not (before.strip() or line.startswith(mark + " "))
            if inside:
                unquoted[at], shown = line[len(mark) :].removeprefix("" if mark.isspace() else " "), shown + 1
                joined += before.startswith(mark)
        elif line.strip():
            if line[0].isspace():
                return None
            inside = False
        before = line
    double_spaced = shown > 1 and joined < MOSTLY * (shown - 1)
    return unquoted if shown and not double_spaced and shown >= MOSTLY * sum(bool(x.strip()) for x in lines) else None


def mail_in(artifact: Artifact) -> list[str] | None:
    """Subject and body; None where it is no mail, or has no body that can be read."""
    start = artifact.head[:START].decode("utf-8", "replace").lstrip()
    head = _P["mail_body"].split(start, maxsplit=1)[0].splitlines() or [""]
    fields = {line.partition(":")[0].lower() for line in head}
    mail_like = _P["mail_field"].match(head[0]) and all(x[:1] in (" ", "\t") or _P["mail_field"].match(x) for x in head)
    if not mail_like or sum(f in fields for f in _FIELDS) < FEWEST_FIELDS or artifact.size_bytes > LONGEST:
        return None
    from email import message_from_string, policy  # seventeen modules that few inputs need

    try:
        mail = message_from_string(artifact.text(LONGEST).lstrip(), policy=policy.default)
        part = mail.get_body(preferencelist=("plain",))
        body = part.get_content() if part is not None else ""
    except DAMAGED:
        return None
    return [str(mail.get("subject", "")).strip(), "", *body.splitlines()] if body.strip() else None
