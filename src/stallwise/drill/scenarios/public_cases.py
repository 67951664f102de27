"""Public incidents as worlds: the facts of a thread, composed into the files a user would have (data/public)."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import Decisive, Exhibit, Plot
from stallwise.drill.scenarios import Author, keep_author
from stallwise.tables import parsed
from stallwise.units import Unit


def _author(folder: Traversable, about: dict[str, Any]) -> Author:
    def plot(rng: Rng) -> Plot:
        asked = Decisive(**about["number"] | {"unit": Unit(about["number"]["unit"])})
        exhibits = (
            Exhibit(e["kind"], e["file"], (folder / e["file"]).read_bytes(), e["deciding"]) for e in about["exhibits"]
        )
        return Plot(about["setup"], tuple(exhibits), asked, source=about["source"])

    plot.__name__ = folder.name
    return plot


for _folder in sorted((files("stallwise.drill.scenarios") / "data" / "public").iterdir(), key=lambda f: f.name):
    if (_folder / "about.toml").is_file():
        _about = parsed((_folder / "about.toml").read_text(encoding="utf-8"))
        keep_author(_about["cause"], _author(_folder, _about))
