"""Files from outside docs/ as pages of the site: what pages link to, and all examples.

Pages link by relative file names, which a code host understands. Where such a link leaves docs/,
the file comes along as a page: Markdown as it is, everything else as highlighted source, an example
with its picture. What it links to comes along too. Links are then those between pages of the site.
"""

from __future__ import annotations

import ast
import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files, InclusionLevel

log = get_plugin_logger("guests")

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
LANGUAGES = {".py": "python", ".toml": "toml", ".yaml": "yaml", ".c": "c", ".urdf": "xml"}
HOME = {"README.md": "index.md"}
"""What the site has another page for."""

ALWAYS = ("CHANGELOG.md", "CONTRIBUTING.md")
"""In the navigation, whether a page links there or not."""

DRAWN_BY = {
    "a_biped_stands": "biped-stands.png",
    "a_leg_jumps": "leg-jumps.png",
    "cross_a_singularity": "crossed.png",
    "draw_the_robots": "robots.png",
    "identify_five_bar": "identified.png",
    "leg_as_a_spring": "leg-spring.png",
    "map_a_workspace": "workspace.png",
    "map_many_postures": "postures.png",
    "plan_by_rollouts": "plans.png",
    "predict_a_five_bar": "predicts.png",
    "parallel_ankle": "ankle.png",
    "pick_and_place": "fastest-way.png",
    "stay_within_limits": "limits.png",
    "train_an_ankle": "learns.png",
}
"""Pictures that examples made, in docs/."""

guests: set[str] = set()
"""Paths from the root of what came along."""


def on_config(config: Any) -> None:
    """A place in the navigation for every example."""
    examples = [{path.name: page_of(here(path))} for path in sorted(ROOT.glob("examples/*.py"))]
    for section in config.nav:
        if "Examples" in section:
            section["Examples"] = [*section["Examples"], *examples]


def on_files(files: Files, config: Any) -> None:
    """Follow the links of all pages; add what they lead to."""
    guests.clear()
    pages = [f for f in files.documentation_pages() if f.abs_src_path]
    ways = [(here(Path(str(f.abs_src_path))), Path(str(f.abs_src_path)).read_text("utf-8"))
            for f in pages]  # fmt: skip
    wanted = [*ALWAYS, *(here(path) for path in sorted(ROOT.glob("examples/*.py")))]
    wanted += [path for where, text in ways for path in outside(where, text)]
    while wanted:
        path = wanted.pop()
        if path not in guests:
            guests.add(path)
            text = page_text(ROOT / path)
            level = InclusionLevel.NOT_IN_NAV  # the navigation may have it, and need not
            files.append(File.generated(config, page_of(path), content=text, inclusion=level))
            wanted += outside(path, text)


def on_page_markdown(text: str, page: Any, **_: Any) -> str:
    """Links of a page, from files to pages."""
    site = page.file.src_uri
    where = next((path for path in guests if page_of(path) == site), f"docs/{site}")

    def rewritten(found: re.Match[str]) -> str:
        path, mark, anchor = found[1].partition("#")
        target = resolved(where, path)
        if target is None or not (target in guests or target in HOME or where in guests):
            return found[0]
        to = posixpath.relpath(page_of(target), posixpath.dirname(site) or ".")
        return f"]({to}{mark}{anchor})"

    parts, at = [], 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(rewritten, text[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, LINK.sub(rewritten, text[at:])])


def here(path: Path) -> str:
    """The path from the root."""
    return path.relative_to(ROOT).as_posix()


def page_of(path: str) -> str:
    """Where a file of the project stands on the site."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return HOME.get(path, path if path.endswith(".md") else f"{path}.md")


def resolved(where: str, target: str) -> str | None:
    """The file that a link leads to, from the root; None for an address, or where there is none."""
    if not target or "://" in target:
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(where), target))
    return path if (ROOT / path).is_file() else None


def outside(where: str, text: str) -> Iterator[str]:
    """Files outside docs/ that a page links to."""
    for target in LINK.findall(FENCE.sub("", text)):
        path = resolved(where, target.partition("#")[0])
        if path and not path.startswith("docs/") and path not in HOME:
            yield path


def page_text(path: Path) -> str:
    """A file as a page."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        return text
    if path.suffix == ".ipynb":
        return "\n\n".join(cell_text(cell) for cell in json.loads(text)["cells"])
    head = f"---\nsearch: {{exclude: true}}\n---\n# {here(path)}\n\n"  # pages are to be found first
    if path.parent == ROOT / "examples" and path.suffix == ".py":
        module = ast.parse(text)
        head = f"# {here(path)}\n\n{ast.get_docstring(module)}\n\n{picture(path.stem, text)}"
        text = "\n".join(text.splitlines()[module.body[0].end_lineno :]).lstrip("\n") + "\n"
    return f"{head}```{LANGUAGES.get(path.suffix, 'text')}\n{text}```\n"


def cell_text(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    return source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```"


def picture(name: str, text: str) -> str:
    """What an example draws, as far as docs/ has it, else the robot that it takes."""
    robots = re.findall(r'robot_file\("(\w+)"\)', text)
    names = [DRAWN_BY[name]] if name in DRAWN_BY else [f"pictures/robot-{r}.png" for r in robots]
    found = [path for path in names if (ROOT / "docs" / path).is_file()]
    return "".join(f"![What it is about](../docs/{path})\n\n" for path in found[:1])
