"""A letter without its envelope: the subject and the body of a mail as it was saved, whatever encoding carried them."""

from __future__ import annotations

import re

_FIELD = re.compile(r"^[A-Za-z][A-Za-z-]{1,40}: ?\S")
SENT = ("from", "date", "to", "message-id", "received", "return-path")
FEWEST = 2  # of these fields: a note may begin with "From:", a mail says when or to whom as well


def is_letter(text: str) -> bool:
    """Fields of a mail, then an empty line."""
    if not _FIELD.match(text[:1000].lstrip()):
        return False
    head = re.split(r"\r?\n\r?\n", text[: 1 << 14].lstrip(), maxsplit=1)[0].splitlines()
    if not head or not all(_FIELD.match(line) or line[:1] in " \t" for line in head):
        return False
    fields = {line.partition(":")[0].lower() for line in head}
    return sum(name in fields for name in SENT) >= FEWEST


def letter(text: str) -> str:
    """Subject and body; the text itself where it has no body that can be read."""
    from email import message_from_string, policy  # seventeen modules that few inputs need

    mail = message_from_string(text.lstrip(), policy=policy.default)
    try:
        part = mail.get_body(preferencelist=("plain", "html"))
        body = part.get_content() if part is not None else ""
    except (KeyError, LookupError, ValueError):
        return text
    if not isinstance(body, str) or not body.strip():
        return text
    subject = str(mail.get("subject", "")).strip()
    return f"{subject}\n\n{body}" if subject else body
