"""XML elements with their line in the file, for error messages.

Only the text itself is read: document types, and so entities and files named by them, are refused.
Nesting and counts are limited.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from xml.parsers import expat

from holoctl.base.errors import InputError, LoadError
from holoctl.io.reader_limits import DECIMAL, MOST_ATTRIBUTES, MOST_ELEMENTS, FilePlace

__all__ = ["DEEPEST", "Element", "blamed_on", "check_root", "decimals", "parsed"]

DEEPEST = 400


@contextmanager
def blamed_on(place: FilePlace) -> Iterator[None]:
    """Raise an `InputError` as a `LoadError` at a place in a file."""
    try:
        yield
    except InputError as error:
        raise place.error(str(error)) from None


_SUFFIXES = {"robot": ".urdf", "mujoco": ".xml or .mjcf", "sdf": ".sdf"}


def check_root(root: Element, tag: str, kind: str) -> None:
    """Raise an error for a document of another format; it states the suffix of that format."""
    if root.tag != tag:
        suffix = _SUFFIXES.get(root.tag)
        hint = f", whose suffix should be {suffix}" if suffix else ""
        raise LoadError(
            f"{kind} starts with <{tag}>; this file starts with <{root.tag[:60]}>{hint}",
            file=root.file,
            line=root.line,
        )


@dataclass
class Element:
    """An XML element of the file; `text` is its text outside child elements."""

    tag: str
    attributes: dict[str, str]
    file: str
    line: int
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def error(self, message: str) -> LoadError:
        """An error at this place in the file; its key is the name, else the tag."""
        key = self.attributes.get("name") or self.tag
        return LoadError(message, file=self.file, key=key, line=self.line)

    def __str__(self) -> str:
        name = self.attributes.get("name")
        return f"<{self.tag}> {name!r}" if name else f"<{self.tag}>"

    def each(self) -> Iterator[Element]:
        """This element and all its descendants, in the order of the file."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += reversed(element.children)


def parsed(text: str, file: str) -> Element:
    """The root element of an XML text.

    Raises
    ------
    LoadError
        With the line: for what is not XML, for document types (and so for entities), for
        elements nested more than 400 deep, for more elements or attributes than are read.
    """
    parser = expat.ParserCreate("utf-8")
    stack = [Element("", {}, file, 0)]
    count = 0

    def refusal(message: str) -> LoadError:
        return LoadError(message, file=file, line=parser.CurrentLineNumber)

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > MOST_ELEMENTS:
            raise refusal(f"more than {MOST_ELEMENTS} elements are not read")
        if len(attributes) > MOST_ATTRIBUTES:
            raise refusal(f"more than {MOST_ATTRIBUTES} attributes of an element are not read")
        if len(stack) > DEEPEST:
            raise refusal(f"elements are nested more than {DEEPEST} deep")
        element = Element(tag, attributes, file, parser.CurrentLineNumber)
        stack[-1].children.append(element)
        stack.append(element)

    def end(tag: str) -> None:
        stack.pop()

    def characters(data: str) -> None:
        stack[-1].text += data

    def doctype(*_: object) -> None:
        raise refusal("document types and entities are not read; write the values out")

    parser.buffer_text, parser.buffer_size = True, 2**20  # few pieces for long texts
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = characters
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise LoadError(
            f"this is not XML: {expat.ErrorString(error.code)}", file=file, line=error.lineno
        ) from None
    return stack[0].children[0]


def decimals(text: str, sizes: Iterable[int]) -> tuple[float, ...] | None:
    """The finite decimal numbers of a text, if it has nothing else and one of the sizes; else
    None."""
    sizes = list(sizes)
    words = text.split(maxsplit=max(sizes))
    if len(words) not in sizes or not all(map(DECIMAL.fullmatch, words)):
        return None
    found = tuple(map(float, words))
    return found if all(map(math.isfinite, found)) else None
