"""Tables and CSV on standard output."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["write_csv", "write_table"]


def write_csv(header: list[str], rows: list[list[Any]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)


def write_table(rows: Sequence[tuple[Any, ...]], units: Sequence[str] = ()) -> None:
    width = max((len(row[0]) for row in rows), default=0)
    for i, (name, *numbers) in enumerate(rows):
        unit = f" {units[i]}" if units else ""
        print(f"  {name:<{width}}" + "".join(f"  {x + 0.0:12.6g}" for x in numbers) + unit)
