"""Public incidents as worlds: the facts of a thread, composed into the files a user would have (data/public)."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from importlib.resources.abc import Traversable

from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import Decisive, Exhibit, Plot
from stallwise.drill.scenarios._planted import planted
from stallwise.units import Unit


def _plot(folder: Traversable) -> Plot:
    about = tomllib.loads((folder / "about.toml").read_text(encoding="utf-8"))
    asked = about["number"]
    exhibits = tuple(
        Exhibit(e["kind"], e["file"], (folder / e["file"]).read_bytes(), e["deciding"]) for e in about["exhibits"]
    )
    number = Decisive(asked["ask"], asked["value"], Unit(asked["unit"]), asked["within"])
    return Plot(about["setup"], exhibits, number, source=about["source"])


def _register() -> None:
    for folder in sorted((files("stallwise.drill.scenarios") / "data" / "public").iterdir(), key=lambda f: f.name):
        if (folder / "about.toml").is_file():
            cause = tomllib.loads((folder / "about.toml").read_text(encoding="utf-8"))["cause"]

            def plot(rng: Rng, folder: Traversable = folder) -> Plot:
                return _plot(folder)

            plot.__name__ = folder.name
            planted(cause)(plot)


_register()
