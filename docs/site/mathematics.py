"""Mathematics set when the site is built: LaTeX to MathML, which browsers show without a script.

`pymdownx.arithmatex` finds ``$...$`` and ``$$...$$`` outside code and leaves them in elements of
their own; here each becomes a `<math>`. What the converter does not know is a warning, so that a
strict build stops. MathML needs a font that knows mathematics, and not every machine has one: STIX
Two Math comes along, cut down to the letters that are there. `ziamath` is taken for its font alone.
"""

from __future__ import annotations

import html
import re
from functools import cache
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from fontTools import subset
from latex2mathml.converter import convert
from mkdocs.plugins import get_plugin_logger

log = get_plugin_logger("mathematics")

FOUND = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)

BEFORE = [  # what the converter sets badly, in other words for the same
    (re.compile(r"\\(begin|end)\{aligned\}"), r"\\\1{split}"),
    (re.compile(r"\\mathrm\{"), r"\\text{"),  # a single letter would be slanted
]
BAR = r"\||&#x0?007C;|&#x02016;|&#x0?2225;"
AFTER = [
    (re.compile(r"(<mo[^>]*>&#x(?:0003D|0002C|00028|02264|02265|021D2|02248);</mo>|<mspace[^>]*>)"
                r"<mo>(&#x02212;|&#x0002B;)</mo>"), r'\1<mo form="prefix">\2</mo>'),  # = -x
    (re.compile(r"<mo>([a-z]{2,})</mo>(?=<mo[^>]*>(?:&#x00028;|\())"), r"<mi>\1</mi>"),  # max(
    (re.compile(r"<mo>([a-z]{2,})</mo>"), r'<mo lspace="0.17em" rspace="0.17em">\1</mo>'),
    (re.compile("<mo>&#x0005E;</mo></mover>"), "<mo>&#x002C6;</mo></mover>"),  # a hat, no caret
    (re.compile(rf'<mo(?: fence="false")?(?: stretchy="false")?>({BAR})</mo>'),
     r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>'),
]  # fmt: skip

ENVIRONMENT = re.compile(r"\\begin\{(.*?)\}")
ENVIRONMENTS = {
    "align", "aligned", "array", "bmatrix", "Bmatrix", "cases", "matrix", "pmatrix", "smallmatrix",
    "split", "vmatrix", "Vmatrix",
}  # fmt: skip
"""Those that the converter knows; of another one it keeps what is in it, without a word."""
PARTS = {"mfrac": 2, "mroot": 2, "msub": 2, "msup": 2, "mover": 2, "munder": 2, "msubsup": 3}
"""Elements, and how many parts each has: a fraction with one is half a formula."""

NOT_SET = re.compile(r"\\[A-Za-z]+|<mi>&(?:amp;)?</mi>|<merror")

LETTERS = {*range(0x20, 0x7F), 0x210E, 0x221A, *range(0x1D434, 0x1D468), *range(0x1D6E2, 0x1D71C)}
"""What the font has in any case: ASCII, roots, and the slanted letters that browsers put there."""

BESIDE = re.compile(
    r"\(<math(?:(?!</math>).)*</math>[),.;:?]*|<math(?:(?!</math>).)*</math>[),.;:?]+", re.DOTALL
)
"""A formula with the bracket before it and the stops behind it: no line ends between them."""

used: set[int] = set()
"""What formulas have beside."""


@cache
def mathml(latex: str, display: str) -> str:
    """One formula."""
    for pattern, words in BEFORE:
        latex = pattern.sub(words, latex)
    made = convert(latex, display=display)
    for pattern, words in AFTER:
        made = pattern.sub(words, made)
    used.update(map(ord, html.unescape(made)))
    return made


def wrong(latex: str, made: str) -> str:
    """What the converter let pass and should not have; empty where that is nothing."""
    if bad := NOT_SET.search(made):
        return f"no way to set {bad[0]}"
    depth = 0
    for letter in re.sub(r"\\.", "", latex, flags=re.DOTALL):  # those written \{ are no braces
        depth += (letter == "{") - (letter == "}")
    if depth:
        return "a brace without its other one"
    if unknown := sorted(set(ENVIRONMENT.findall(latex)) - ENVIRONMENTS):
        return f"no environment {unknown[0]!r}"
    for element in ElementTree.fromstring(made).iter():
        name = element.tag.rpartition("}")[2]
        if len(element) != PARTS.get(name, len(element)):
            return f"{name} has {len(element)} of {PARTS[name]} parts"
    return ""


def on_page_content(text: str, page: Any, **_: Any) -> str:
    """All formulas of a page."""

    def set_one(found: re.Match[str]) -> str:
        latex = html.unescape(found["latex"]).strip()
        block = found["tag"] == "div"
        try:
            made = mathml(latex, "block" if block else "inline")
        except Exception as error:
            log.warning("%s: %s: %r", page.file.src_uri, latex, error)
            return found[0]
        if why := wrong(latex, made):
            log.warning("%s: %s in: %s", page.file.src_uri, why, latex)
        return f'<div class="formula">{made}</div>' if block else made

    return BESIDE.sub(r'<span class="kept">\g<0></span>', FOUND.sub(set_one, text))


def on_post_build(config: Any) -> None:
    """The font, as far as it is used."""
    if find_spec("ziamath") is None:
        log.warning("no font for mathematics: pip install ziamath, of the extra docs")
        return
    options = subset.Options(flavor="woff", layout_features=["*"], name_IDs=["*"])
    cut = subset.Subsetter(options)
    cut.populate(unicodes=LETTERS | used)
    with as_file(files("ziamath.fonts") / "STIXTwoMath-Regular.ttf") as path:
        font = subset.load_font(path, options)
        cut.subset(font)
        subset.save_font(font, Path(config.site_dir) / "site" / "mathematics.woff", options)
