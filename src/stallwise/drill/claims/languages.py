"""Accounts in other languages: the words of languages.tsv are put into English, so that the same ideas can be read."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from stallwise.drill import rows

TABLE = "claims/languages.tsv"
UNSPACED = ("zh", "ja")
FUNCTION_ROWS = 30  # the first rows hold the small words that tell languages apart
FOREIGN = (
    0.15  # of the words are small words of a language: in its own prose a third are, in English a few that look alike
)
DIFFERENT = 5  # of them at least: a list of terms has "per" or "max" several times
_MARKS = str.maketrans("。，、：；（）？！～「」", '.,,:;()?!-""')
_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH = frozenset(
    "the a an of in with at for and or is are has have not because so if only all every it to that by than then no".split()
)


@cache
def _patterns(language: str) -> tuple[re.Pattern[str], dict[str, str]]:
    """One expression of all words, longest first, and the English of each by its place."""
    spaced = language not in UNSPACED
    words = [(w, row["english"]) for row in rows(TABLE) for w in row[language].split("|") if w]
    words.sort(key=lambda pair: -len(pair[0]))
    english = {f"w{n}": word for n, (_, word) in enumerate(words)}
    expressions = (f"(?P<w{n}>{_expression(plain(w), spaced)})" for n, (w, _) in enumerate(words))
    found = "|".join(expressions)
    return re.compile(rf"(?<!\w)(?:{found})(?!\w)" if spaced else found), english


def _expression(word: str, spaced: bool) -> str:
    return re.escape(word).replace(r"\*", r"\w*" if spaced else "").replace("_", r"[\s'-]+")


def plain(text: str) -> str:
    """Lower case without accents, straight punctuation."""
    lowered = text.lower().replace("\u2019", "'").replace("ß", "ss").replace("²", "^2")
    folded = unicodedata.normalize("NFKD", lowered)
    spaced = re.sub("([。，、：；？！])", r"\1 ", "".join(c for c in folded if not "\u0300" <= c <= "\u036f"))
    return unicodedata.normalize("NFC", spaced).translate(_MARKS)


def language_of(text: str) -> str:
    """The column of the table that fits, "" for English."""
    if re.search("[\u3040-\u30ff]", text):
        return "ja"
    if len(re.findall("[\u4e00-\u9fff]", text)) > 4:
        return "zh"
    words, small = _WORD.findall(plain(text)), rows(TABLE)[:FUNCTION_ROWS]
    best, most = "", max(FOREIGN, sum(w in _ENGLISH for w in words) / (len(words) or 1))
    for name in small[0].keys() - {"english", *UNSPACED}:
        known = {plain(w) for row in small for w in row[name].split("|")}
        share = sum(w in known for w in words) / (len(words) or 1)
        if share > most and len(known & set(words)) >= DIFFERENT:
            best, most = name, share
    return best


def in_english(text: str) -> str:
    """The account as it is read; an English one is left as it is."""
    language = language_of(text)
    if not language:
        return text
    pattern, english = _patterns(language)
    return pattern.sub(lambda match: f" {english[str(match.lastgroup)]} ", plain(text))
