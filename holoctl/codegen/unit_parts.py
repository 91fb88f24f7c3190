"""C that brings parts of a configuration, quaternions and cosine-sine pairs, to norm one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holoctl.codegen.c_text import filled

__all__ = ["Normalise", "normalised", "normalising"]


@dataclass(frozen=True)
class Normalise:
    """``normalise.c``: quaternions and cosine-sine pairs of norm one.

    Attributes
    ----------
    parts : str
        A condition that normalises each of them.
    """

    parts: str


def normalised(where: str, parts: Sequence[tuple[int, ...]]) -> str:
    """A condition of C that normalises these parts of an array; empty without any."""
    return " && ".join(f"normalise({where} + {part[0]}, {len(part)})" for part in parts)


def normalising(parts: Sequence[tuple[int, ...]]) -> str:
    """The functions ``normalise`` and ``normalise_all``; empty where there is nothing for them."""
    return filled("normalise.c", own=Normalise(normalised("unit", parts))) if parts else ""
