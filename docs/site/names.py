"""Public names become links to the reference: those in docstrings, and ``hc.name`` in pages.

See Also becomes a list of links.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

import holoctl as hc

PLACES = {name: f"holoctl.{name}" for name in hc.__all__}
PLACES |= {name: f"holoctl.results.{name}" for name in hc.results.__all__}
PLACES |= {name: f"holoctl.protocols.{name}" for name in hc.protocols.__all__}
PLACES |= {name: f"holoctl.methods.{name}" for name in hc.methods.__all__}
MODULES = {"__version__", "methods", "protocols", "results"}
NAMES = "|".join(sorted(PLACES.keys() - MODULES, key=len)[::-1])
IN_DOCSTRINGS = re.compile(rf"(?<![`\[\w])`({NAMES})`(?![`\w])")
PAGE = re.compile(r"(?<![\w/`])docs/([\w-]+)\.md(?![`\w])")
IN_PAGES = re.compile(
    rf"(?<![`\[\w])`hc\.(?:results\.|protocols\.|methods\.)?({NAMES})(\([^`\n]*\))?`(?![`\w])"
)
SEE_ALSO = re.compile(r"(?<=^See Also\n--------\n)(?:[\w.]+ : .+\n?)+", re.MULTILINE)
ENTRY = re.compile(r"^((?:\w+\.)?(\w+)) : ", re.MULTILINE)
CODE_OR_LINK = re.compile(
    r"^(```|~~~).*?^\1|^#.*?$|\[[^\]\n]*\]\([^)\n]*\)", re.DOTALL | re.MULTILINE
)


class PublicNames(griffe.Extension):
    """For mkdocstrings: `name` in a docstring is a link, except to itself; docs/page.md too."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            own = obj.path.split(".")

            def linked(found: re.Match[str]) -> str:
                name = found[1]
                return found[0] if name in own else f"[`{name}`][{PLACES[name]}]"

            text = PAGE.sub(r"[\1](../\1.md)", obj.docstring.value)
            text = IN_DOCSTRINGS.sub(linked, text)
            obj.docstring.value = SEE_ALSO.sub(_listed, text)


def _listed(entries: re.Match[str]) -> str:
    """``name : why`` of a See Also section as items of a list, with links."""
    return ENTRY.sub(lambda found: f"- [`{found[1]}`][{PLACES[found[2]]}]: ", entries[0])


def on_page_markdown(text: str, **_: Any) -> str:
    """``hc.name`` in the prose of a page: headings, code and links stay as they are."""

    def linked(found: re.Match[str]) -> str:
        return f"[{found[0]}][{PLACES[found[1]]}]"

    parts, at = [], 0
    for other in CODE_OR_LINK.finditer(text):
        parts += [IN_PAGES.sub(linked, text[at : other.start()]), other[0]]
        at = other.end()
    return "".join([*parts, IN_PAGES.sub(linked, text[at:])])
