"""Renames a cause everywhere: make rename-cause OLD=slow-rank NEW=straggler-rank.

Its two files move; its slug changes in every text that git knows, weights and counts included, and its function in every Python file.
A slug of one word is an English word, too: it changes only where it stands in quotes or as the name of the rule.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
RULES = ROOT / "src" / "stallwise" / "causes"
TEXTS = {".py", ".toml", ".json", ".jsonl", ".md", ".csv", ".tsv", ".txt", ".yml", ".html", ".js"}


def main(old: str, new: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", new):
        sys.exit(f"'{new}' is no name of a cause: small letters and dashes, as in straggler-rank")
    before, after = old.replace("-", "_"), new.replace("-", "_")
    pair = [p for p in RULES.glob(f"*/{before}.*") if p.suffix in (".py", ".toml")]
    if len(pair) != 2:
        sys.exit(f"there is no cause {old}")
    if list(RULES.glob(f"*/{after}.*")):
        sys.exit(f"{new} is there already")
    for path in pair:
        path.rename(path.with_name(f"{after}{path.suffix}"))
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    changed = sum(_rewrite(ROOT / name, old, new) for name in listed.splitlines() if (ROOT / name).is_file())
    for name in (before, old):  # captures lie in a folder of its name
        folder = ROOT / "tests" / "cases" / name
        if folder.is_dir():
            folder.rename(folder.with_name(new if name == old else after))
    print(f"{old} -> {new}: two files moved, {changed} texts rewritten")


def _rewrite(path: Path, old: str, new: str) -> bool:
    if path.suffix not in TEXTS or "vendor" in path.parts:
        return False
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return False
    told = _renamed(text, old, new, is_code=path.suffix == ".py")
    if told != text:
        path.write_text(told, encoding="utf-8")
    return told != text


def _renamed(text: str, old: str, new: str, *, is_code: bool) -> str:
    before, after = old.replace("-", "_"), new.replace("-", "_")
    if "-" in old:
        text = re.sub(rf"(?<![\w-]){re.escape(old)}(?![\w-])", new, text)
        return re.sub(rf"(?<!\w){before}(?!\w)", after, text) if is_code else text
    text = re.sub(rf"(?<=[\"'`]){old}(?=[\"'`:])", new, text)
    rule = rf"(?<=^def ){before}(?=\()|(?<=import ){before}\b|(?<=\.){before}(?= import)"
    return re.sub(rule, after, text, flags=re.M) if is_code else text


if __name__ == "__main__":
    main(*sys.argv[1:])
