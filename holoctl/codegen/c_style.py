"""The style of exported C: braces around every body, and names that no other file has.

Templates are written in short; reviewers of code for a robot's own computer ask for more, such as
rule 15.6 of MISRA C:2012, so it is added to the finished text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["braced", "finished", "prefixed"]

_TOKEN = re.compile(
    r"/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*"
    r"|\s+|\w+|.",
    re.DOTALL | re.MULTILINE,
)
_QUIET = re.compile(r"\s|/\*|[ \t]*#")
_WITH_BODY = re.compile(r"\b(?:if|for|while|do|else)\b")
_NAMES = (
    re.compile(r"^#define (\w+)", re.MULTILINE),
    re.compile(r"^(?:\w+ )*static (?:\w+ )*\**(\w+)\(", re.MULTILINE),
    re.compile(r"^static const \w+ (\w+)", re.MULTILINE),
    re.compile(r"^typedef char (\w+)\[", re.MULTILINE),
    re.compile(r"^typedef struct \{[^}]*\} (\w+);", re.MULTILINE),
)
_ENUM = re.compile(r"^(?:typedef )?enum \{(.*?)\}(?: (\w+))?;", re.DOTALL | re.MULTILINE)


def finished(text: str, prefix: str) -> str:
    """A source of C as it is written, of a library whose public names begin with `prefix`."""
    own = prefix.removeprefix("holoctl_")
    return prefixed(braced(text), f"c_{own}" if own[0].isdigit() else own)


def braced(text: str) -> str:
    """C with every body of a branch or a loop in braces.

    Parameters
    ----------
    text : str
        Functions end with a brace in the first column; preprocessor lines are between statements.
    """
    parts = text.split("\n}\n")
    return "\n}\n".join(_Braces(x).text() if _WITH_BODY.search(x) else x for x in parts)


class _Braces:
    """A part of a file up to the end of a function, from token to token."""

    def __init__(self, text: str) -> None:
        self.tokens, self.i, self.out = _TOKEN.findall(text), 0, list[str]()

    def text(self) -> str:
        before = ""
        while self.i < len(self.tokens):
            token = self.tokens[self.i]
            if token == "{" and before == ")":
                self._statement()
                continue
            self._take()
            before = before if _QUIET.match(token) else token
        return "".join(self.out)

    def _take(self) -> None:
        self.out.append(self.tokens[self.i])
        self.i += 1

    def _next(self) -> str:
        """The next token that is one, up to which the others are taken."""
        while self.i < len(self.tokens) and _QUIET.match(self.tokens[self.i]):
            self._take()
        return self.tokens[self.i] if self.i < len(self.tokens) else ""

    def _within(self, end: str) -> None:
        """Up to a token outside parentheses and braces."""
        depth = 0
        while self.i < len(self.tokens):
            token = self.tokens[self.i]
            depth += (token in "({[") - (token in ")}]") if len(token) == 1 else 0
            self._take()
            if depth == 0 and token == end:
                return

    def _statement(self) -> None:
        token = self._next()
        if token == "{":
            self._take()
            while self._next() not in ("}", ""):
                self._statement()
            if self.i < len(self.tokens):
                self._take()
        elif token in ("if", "for", "while", "switch", "else", "do"):
            indent = self._indent()
            self._take()
            if token not in ("else", "do"):
                self._next()
                self._within(")")
            self._body(token, indent)
            if token == "do":
                self._within(";")
        else:
            self._within(":" if token in ("case", "default") else ";")

    def _body(self, token: str, indent: str) -> None:
        at = self.i
        first = self._next()
        if first == "{" or (token == "else" and first == "if"):
            self._statement()
        else:
            taken = self.out[len(self.out) - (self.i - at) :]
            del self.out[len(self.out) - (self.i - at) :]
            notes = "".join(x for x in taken if not x.isspace())
            self.out.append(f" {{{f' {notes}' if notes else ''}\n{indent}  ")
            self._statement()
            self.out.append(f"\n{indent}}}")
        if token == "if" and self._next_is_else():
            self._statement()

    def _next_is_else(self) -> bool:
        at = self.i
        while at < len(self.tokens) and _QUIET.match(self.tokens[at]):
            at += 1
        if at == len(self.tokens) or self.tokens[at] != "else":
            return False
        notes = [x for x in self.tokens[self.i : at] if not x.isspace()]
        self.out.append(" ".join(["", *notes, ""]))
        self.i = at
        return True

    def _indent(self) -> str:
        line = "".join(self.out[-200:]).rsplit("\n", 1)[-1]
        return line[: len(line) - len(line.lstrip())]


def prefixed(text: str, prefix: str) -> str:
    """C whose names of its own begin with `prefix`, in capitals where they are, so that two files
    can be one translation unit."""
    names = {x for x in _own_names(text) if not x.lower().startswith(f"holoctl_{prefix}")}
    there = set(re.findall(r"\w+", text))
    while True:
        renamed = {x: _with(prefix, x, names) for x in names}
        if there.isdisjoint(renamed.values()):
            break
        prefix += "_c"
    pattern = re.compile(r"(/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\")|(?<![.\w])(?<!->)(\w+)\b", re.DOTALL)
    return pattern.sub(lambda x: x[0] if x[2] is None else renamed.get(x[2], x[2]), text)


def _with(prefix: str, name: str, names: set[str]) -> str:
    short = name.removeprefix("HOLOCTL_").removeprefix("holoctl_")
    short = name if short in names else short
    return f"{prefix.upper() if name.isupper() else prefix}_{short}"


def _own_names(text: str) -> Iterator[str]:
    for pattern in _NAMES:
        yield from pattern.findall(text)
    for body, name in _ENUM.findall(text):
        yield from re.findall(r"(\w+)(?: = [^,]*)?\s*(?:,|$)", re.sub(r"/\*.*?\*/", "", body))
        if name:
            yield name
