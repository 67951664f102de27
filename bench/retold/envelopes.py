"""Files in other clothes: packed, joined, renamed, in other encodings, and settings in other trees."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile

from .files import CODE, File, is_text, of_each, telling


@of_each(is_text)
def utf16(f: File) -> File:
    """As a PowerShell redirection writes it."""
    return File(f.name, data=f.text.encode("utf-16"))


@of_each(is_text)
def gz(f: File) -> File:
    """A file, packed."""
    return File(f.name + ".gz", data=gzip.compress(f.text.encode()))


@of_each(is_text)
def xz_bz2(f: File) -> File:
    """A file, packed otherwise."""
    data = f.text.encode()
    return (
        File(f.name + ".xz", data=lzma.compress(data))
        if len(data) % 2
        else File(f.name + ".bz2", data=bz2.compress(data))
    )


def _bytes(f: File) -> bytes:
    return f.text.encode() if f.data is None else f.data


@telling
def one_zip(files: list[File]) -> list[File]:
    """All in one archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for f in files:
            archive.writestr("report/" + f.name, _bytes(f))
    return [File("report.zip", data=out.getvalue())]


@telling
def one_tar(files: list[File]) -> list[File]:
    """All in one archive of the other kind."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for f in files:
            entry = tarfile.TarInfo("report/" + f.name)
            entry.size = len(_bytes(f))
            archive.addfile(entry, io.BytesIO(_bytes(f)))
    return [File("report.tar.gz", data=out.getvalue())]


def _joined(files: list[File], head: str) -> list[File]:
    texts = [f for f in files if f.data is None]
    rest = [f for f in files if f.data is not None]
    return [*rest, File("all.txt", "\n".join(head.format(f.name) + "\n" + f.text for f in texts))] if texts else rest


@telling
def tail_heads(files: list[File]) -> list[File]:
    """All in one text, as `tail -n +1 *` prints them."""
    return _joined(files, "==> {} <==")


@telling
def cat_prompts(files: list[File]) -> list[File]:
    """All in one text, each under the command that printed it."""
    return _joined(files, "$ cat {}")


@telling
def in_one_issue(files: list[File]) -> list[File]:
    """All in one issue, each under its name in a fenced block."""
    texts = [f for f in files if f.data is None]
    parts = [f.text if f.name.endswith(".md") else f"**{f.name}**\n\n```\n{f.text.rstrip()}\n```\n" for f in texts]
    return [*[f for f in files if f.data is not None], File("issue.md", "\n".join(parts))]


@telling
def other_endings(files: list[File]) -> list[File]:
    """Names that say nothing about the format."""
    return [
        f if f.name.endswith(CODE) else File(f"{f.stem}.{e}", f.text, f.data)
        for f, e in zip(files, _cycle(), strict=False)
    ]


def _cycle() -> list[str]:
    return ["out", "dat", "txt", "capture", "1"] * 40


@telling
def other_way_round(files: list[File]) -> list[File]:
    """The files in the opposite order."""
    count = len(files)
    return [File(f"{count - i:02d}-{f.name}", f.text, f.data) for i, f in enumerate(files)]


@telling
def in_folders(files: list[File]) -> list[File]:
    """Every file in a folder of its own."""
    return [File(f"{f.stem}.d/{f.name}", f.text, f.data) for f in files]


def _is_json(f: File) -> bool:
    try:
        return f.name.endswith(".json") and isinstance(json.loads(f.text), dict)
    except ValueError:
        return False


def _flat(tree: object, path: str = "") -> list[tuple[str, object]]:
    if isinstance(tree, dict):
        return [x for k, v in tree.items() for x in _flat(v, f"{path}.{k}" if path else str(k))]
    return [(path, tree)]


def _word(leaf: object) -> str:
    return leaf if isinstance(leaf, str) else json.dumps(leaf)


@of_each(_is_json)
def json_as_yaml(f: File) -> File:
    """Settings and results of one object as YAML."""

    def lines(tree: object, deep: int) -> list[str]:
        assert isinstance(tree, dict)
        out = []
        for key, leaf in tree.items():
            inner = isinstance(leaf, dict) and bool(leaf)
            out.append("  " * deep + f"{key}:" + ("" if inner else " " + json.dumps(leaf)))
            out += lines(leaf, deep + 1) if inner else []
        return out

    return f.said("\n".join(lines(json.loads(f.text), 0)) + "\n", ".yaml")


@of_each(_is_json)
def json_as_flags(f: File) -> File:
    """The same as options of a command."""
    words = [f"--{k.replace('_', '-')} {_word(v)}" for k, v in _flat(json.loads(f.text))]
    return f.said("python run.py " + " \\\n  ".join(words) + "\n", ".txt")


@of_each(_is_json)
def json_as_dict(f: File) -> File:
    """The same as Python prints it."""
    return f.said(repr(json.loads(f.text)) + "\n", ".txt")


@of_each(_is_json)
def json_other_order(f: File) -> File:
    """Keys from the last to the first, in one line."""
    return f.said(json.dumps(dict(reversed(list(json.loads(f.text).items())))))


def _rows(f: File) -> list[dict[str, object]]:
    try:
        found = [json.loads(x) for x in f.text.splitlines() if x.strip()]
    except ValueError:
        return []
    return found if len(found) > 1 and all(isinstance(x, dict) for x in found) else []


@of_each(lambda f: bool(_rows(f)))
def lines_as_json(f: File) -> File:
    """An object a line as one list."""
    return f.said(json.dumps(_rows(f), indent=2), ".json")


@of_each(lambda f: bool(_rows(f)) and all(not isinstance(v, dict | list) for r in _rows(f) for v in r.values()))
def lines_as_logfmt(f: File) -> File:
    """An object a line as `key=value`."""
    told = [" ".join(f"{k}={json.dumps(v) if ' ' in str(v) else v}" for k, v in row.items()) for row in _rows(f)]
    return f.said("\n".join(told) + "\n", ".log")
