"""Finds a model by name, by path or in the local Hugging Face cache; never on the network."""

from __future__ import annotations

import json
import os
import re
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from stallwise.errors import BadRequest, UnreadableInput
from stallwise.physics.specs.hf_config import read_config
from stallwise.physics.specs.model import Model
from stallwise.tables import parsed

CATALOG = Path(__file__).parent / "catalog" / "models"


_SHAPE = ("num_hidden_layers", "hidden_size", "num_attention_heads")
_RELEASE = re.compile(r"[\s_:-]v?\d+\.\d+\.\d+\S*$")  # of the container that serves it: "llama-3.3-70b-instruct v1.8.0"
_FAMILY_AND_SIZE = re.compile(
    r"(?P<family>[a-z]{1,40})-?(?P<generation>\d{1,9}(?:\.\d{1,9})?)?-?(?<!\d)(?P<size>\d{1,9}(?:\.\d{1,9})?b)"
)


@cache
def catalog() -> dict[str, dict[str, Any]]:
    """Every catalogued model's config by its name."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(CATALOG.glob("*.toml")):
        found.update(parsed(path.read_text(encoding="utf-8")))
    return found


@cache
def _names() -> dict[str, str]:
    """Every spelling to the catalogue's name."""
    spelled: dict[str, str] = {}
    for name, config in catalog().items():
        for spelling in (name, *config.get("aliases", ())):
            spelled[_plain(spelling)] = name
    return spelled


def _plain(name: str) -> str:
    low = name.strip().lower().split("/")[-1]
    low = re.sub(
        r"[-_](instruct|base|chat|it|hf|bf16|fp8|nvfp4|fp4|mxfp4|awq|gptq|int4|w4a16|w8a8|dynamic|preview|v0\.\d|\d{4})(?=$|[-_])",
        "",
        low,
    )
    return re.sub(r"[-_. ]", "", low)


def _spelled(text: str) -> str | None:
    """The catalogue's name for a spelling: itself, without the release of who serves it, or the family's by its size."""
    for spelling in (text, _RELEASE.sub("", text.strip())):
        found = _names().get(_plain(spelling)) or _latest_of_size(_plain(spelling))
        if found:
            return found
    return None


def _latest_of_size(plain: str) -> str | None:
    """`llama 70b` names no generation: the latest of that family and size, where all known ones have the same shape."""
    asked = _FAMILY_AND_SIZE.fullmatch(plain)
    if not asked or asked["generation"]:
        return None
    ages = {
        float(one["generation"]): name
        for name in catalog()
        if (one := _FAMILY_AND_SIZE.fullmatch(name)) and one["generation"]
        and (one["family"], one["size"]) == (asked["family"], asked["size"])
    }  # fmt: skip
    shapes = {tuple(catalog()[name].get(key) for key in _SHAPE) for name in ages.values()}
    return ages[max(ages)] if len(shapes) == 1 else None


def model_names() -> list[str]:
    """The names `find_model` knows without a file."""
    return sorted(catalog())


def find_model(name_or_path: str) -> Model:
    """A model by catalogue name, config.json, folder holding one, or Hugging Face id in the local cache."""
    text = str(name_or_path).strip()
    if not text:
        raise BadRequest("no model was named", hint="--model llama-3.1-8b, or the path of a config.json")
    path = Path(text).expanduser()
    try:
        if path.is_dir():
            path = path / "config.json"
            if not path.is_file():
                raise UnreadableInput(f"no config.json in {text}", hint="give the folder of a Hugging Face model")
        if path.is_file():
            return read_config(_json(path), _title(path))
    except (OSError, ValueError) as error:  # longer than any name, or with a zero byte
        raise BadRequest(f"'{text[:80]}' is no model", hint="--model llama-3.1-8b") from error
    return known_model(text)


def known_model(text: str) -> Model:
    """A model by its name alone: what a log or a page calls a model must never open a file of that name."""
    path = Path(text)
    name = _spelled(text)
    if name:
        return read_config(catalog()[name], name)
    cached = _in_cache(text)
    if cached:
        return read_config(_json(cached), text.split("/")[-1])
    if path.suffix == ".json" or text.startswith((".", "/", "~")):
        raise UnreadableInput(f"there is no file {text}", hint="check the path of the config.json")
    near = get_close_matches(_plain(text), list(_names()), n=3, cutoff=0.5)
    known = ", ".join(dict.fromkeys(_names()[n] for n in near)) or "llama-3.1-8b"
    raise BadRequest(
        f"no model called '{text}' is known",
        hint=f"the nearest known: {known}; or give its config.json",
    )


def _title(path: Path) -> str:
    return path.parent.resolve().name if path.name == "config.json" else path.stem


def _json(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise UnreadableInput(f"{path} is not readable JSON", hint="give a Hugging Face config.json") from error
    if not isinstance(config, dict):
        raise UnreadableInput(f"{path} is not a JSON object", hint="give a Hugging Face config.json")
    return config


def _in_cache(name: str) -> Path | None:
    """The config of a model already downloaded by Hugging Face tools."""
    if "/" not in name:
        return None
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser()
    hub = Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
    folder = hub / ("models--" + name.replace("/", "--")) / "snapshots"
    found = sorted(folder.glob("*/config.json"), key=lambda p: p.stat().st_mtime) if folder.is_dir() else []
    return found[-1] if found else None
