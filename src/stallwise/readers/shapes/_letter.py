"""A mail: its subject and body as a text, and the files that hang on it, whatever encoding carried them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stallwise.evidence.artifact import Artifact
from stallwise.readers._patterns import document, patterns

if TYPE_CHECKING:
    from email.message import EmailMessage

LONGEST = 64 << 20  # bytes, with what hangs on it
START = 1 << 14  # bytes in which its fields end
FEWEST_FIELDS = 2  # a note may begin with "From:", a mail says when or to whom as well
DAMAGED = (LookupError, ValueError, TypeError, AttributeError)  # what the parser of mails raises on what is none
_P = patterns("unwrap")
_FIELDS = document("shapes/carriers")["mail"]


def letter_in(artifact: Artifact) -> list[str] | None:
    """Subject and body; None where it is no mail, or has no body that can be read."""
    mail = _mail(artifact)
    try:
        part = mail.get_body(preferencelist=("plain", "html")) if mail is not None else None
        body = part.get_content() if part is not None else ""
    except DAMAGED:
        return None
    if mail is None or not isinstance(body, str) or not body.strip():
        return None
    subject = str(mail.get("subject", "")).strip()
    return [*([subject, ""] if subject else []), *body.splitlines()]


def attached(artifact: Artifact) -> list[Artifact]:
    """What hangs on a mail, and its own text; nothing where it is no mail, only says something, or is damaged."""
    mail, found = _mail(artifact), []
    try:
        for part in mail.iter_attachments() if mail is not None else ():
            content, name = part.get_payload(decode=True), part.get_filename()
            if isinstance(content, bytes) and name:
                told = replace(
                    artifact, name=f"{artifact.name}!{name}", path=None, url=None, inside=None, content=content
                )
                found.append(told)
    except DAMAGED:
        return []
    said = letter_in(artifact) if found else None
    return [*found, artifact.saying("\n".join(said) + "\n")] if said else found


def _mail(artifact: Artifact) -> EmailMessage | None:
    """Fields of a mail, then an empty line."""
    stored = artifact.head[:START] if artifact.packed else artifact.start(START)
    start = stored.decode("utf-8", "replace").lstrip()
    head = _P["mail_body"].split(start, maxsplit=1)[0].splitlines() or [""]
    fields = {line.partition(":")[0].lower() for line in head}
    mail_like = _P["mail_field"].match(head[0]) and all(x[:1] in (" ", "\t") or _P["mail_field"].match(x) for x in head)
    if not mail_like or sum(f in fields for f in _FIELDS) < FEWEST_FIELDS or artifact.size_bytes > LONGEST:
        return None
    from email import message_from_string, policy  # seventeen modules that few inputs need

    return message_from_string(artifact.text(LONGEST).lstrip(), policy=policy.default)
