"""Writes docs/formulas from the formulas: python -m stallwise.physics.costs.formulas._write docs/formulas."""

from __future__ import annotations

import sys
from pathlib import Path

from stallwise.physics.costs.formulas import all_formulas, page


def pages() -> dict[str, str]:
    """File name to text, the index included."""
    found = {f"{name}.md": page(name, module) for name, module in all_formulas().items()}
    lines = [
        "# Formulas",
        "",
        "Generated from `stallwise.physics.costs.formulas`; the numbers are computed by that code.",
        "",
    ]
    for name, module in all_formulas().items():
        title = (module.__doc__ or "").strip().splitlines()[0].rstrip(".")
        lines.append(f"- [{name}]({name}.md): {title}")
    return {**found, "README.md": "\n".join([*lines, ""])}


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/formulas")
    target.mkdir(parents=True, exist_ok=True)
    for file, text in pages().items():
        (target / file).write_text(text, encoding="utf-8")
    print(f"{len(pages())} pages in {target}")
