"""Values of a YAML file with their line in the file, for error messages.

Only texts, decimal numbers, lists and mappings are read. Anchors, aliases and tags are refused, and
so are duplicate keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from holoctl.base.checks import suggestion
from holoctl.base.errors import LoadError
from holoctl.io.reader_limits import DECIMAL, LARGEST, MOST_VALUES

__all__ = ["Entry", "yaml_document"]

_TEXT = "tag:yaml.org,2002:str"
_DEEPEST = 20


@dataclass(frozen=True)
class Entry:
    """A value in a YAML file.

    Attributes
    ----------
    node : yaml.Node
        The value, with its position in the file.
    file : str
        The file.
    key : str or None
        The top-level key that the value belongs to; None for the whole document.
    """

    node: yaml.Node
    file: str
    key: str | None = None

    @property
    def line(self) -> int:
        """Line in the file, counted from 1."""
        return int(self.node.start_mark.line) + 1

    def error(self, message: str) -> LoadError:
        """An error at this place in the file."""
        return LoadError(message, file=self.file, key=self.key, line=self.line)

    def text(self) -> str:
        """The value as a text of printable characters, not empty."""
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag != _TEXT:
            quotes = "; put it in quotes" if isinstance(self.node, yaml.ScalarNode) else ""
            raise self._not("a text", quotes)
        if not self.node.value or not self.node.value.isprintable():
            raise self._not("a text of printable characters")
        return str(self.node.value)

    def number(self) -> float:
        """The value as a decimal number, of at most 1e12 in size."""
        # decimals only, because YAML 1.1 has octals and base 60, but not 1e-3
        if (
            isinstance(self.node, yaml.ScalarNode)
            and self.node.style is None
            and DECIMAL.fullmatch(self.node.value)
        ):
            x = float(self.node.value)
            if abs(x) <= LARGEST:
                return x
            raise self._not(f"a finite number of at most {LARGEST:g} in size")
        raise self._not("a finite number")

    def numbers(self) -> list[float]:
        """The elements of a list of numbers; one number counts as a list of one."""
        if isinstance(self.node, yaml.SequenceNode):
            return [entry.number() for entry in self.items()]
        return [self.number()]

    @property
    def is_list(self) -> bool:
        """Whether the value is a list."""
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def is_mapping(self) -> bool:
        """Whether the value is a mapping."""
        return isinstance(self.node, yaml.MappingNode)

    def flag(self) -> bool:
        """The value as true or false."""
        plain = isinstance(self.node, yaml.ScalarNode) and self.node.style is None
        if not plain or self.node.value not in ("true", "false"):
            raise self._not("true or false")
        return bool(self.node.value == "true")

    def items(self) -> list[Entry]:
        """The elements of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            one = isinstance(self.node, yaml.ScalarNode) and self.node.value
            hint = f"; one element is a list too: [{self.node.value[:60]}]" if one else ""
            raise self._not("a list, such as [a, b]", hint)
        return [Entry(node, self.file, self.key) for node in self.node.value]

    def fields(self, valid: tuple[str, ...] = ()) -> dict[str, Entry]:
        """The values of a mapping by key; `valid` lists the keys there may be (default: any)."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self._not("a mapping, such as {key: value}")
        found: dict[str, Entry] = {}
        for key_node, value_node in self.node.value:
            key = Entry(key_node, self.file, self.key).text()
            at_key = Entry(key_node, self.file, self.key or key)
            if key in found:
                raise at_key.error(f"the key {key!r} is given twice")
            if valid and key not in valid:
                raise at_key.error(
                    f"there is no key {key!r}{suggestion(key, valid)}; "
                    f"valid keys: {', '.join(valid)}"
                )
            found[key] = Entry(value_node, self.file, self.key or key)
        return found

    def _not(self, expected: str, hint: str = "") -> LoadError:
        about = f"{self.key}: " if self.key else ""
        return self.error(f"{about}expected {expected}; got {self.shown}{hint}")

    @property
    def shown(self) -> str:
        """The value for a message."""
        if isinstance(self.node, yaml.ScalarNode):
            return repr(self.node.value[:60]) if self.node.value else "nothing"
        return "a list" if self.is_list else "a mapping"


def yaml_document(text: str, file: str) -> Entry:
    """The one document of a YAML text.

    Raises
    ------
    LoadError
        If the text is not YAML, is empty, uses anchors, aliases or tags, or has more values than
        are read.
    """
    try:
        depth = count = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            count += isinstance(event, yaml.NodeEvent)
            wrong = None
            if getattr(event, "anchor", None) or getattr(event, "tag", None):
                wrong = "anchors (&), aliases (*) and tags (!) are not read; write the value out"
            elif depth > _DEEPEST:
                wrong = f"lists and mappings are nested too deeply, more than {_DEEPEST} levels"
            elif count > MOST_VALUES:
                wrong = f"more than {MOST_VALUES} values are not read"
            if wrong is not None:
                line = event.start_mark.line + 1 if event.start_mark else None
                raise LoadError(wrong, file=file, line=line)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else None
        reason = ", ".join(filter(None, (error.context, error.problem)))
        raise LoadError(f"this is not YAML: {reason}", file=file, line=line) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise LoadError("a character that YAML forbids", file=file, line=line) from None
    except (ValueError, OverflowError) as error:  # an escaped character beyond Unicode
        raise LoadError(f"this is not YAML: {error}", file=file) from None
    if node is None:
        raise LoadError("the file is empty", file=file)
    return Entry(node, file)
