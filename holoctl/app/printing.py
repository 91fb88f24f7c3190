"""Output of commands: tables, CSV, JSON."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from holoctl.doctor.report import plain

__all__ = ["answer", "write_table"]

Table = tuple[list[str], list[list[Any]]]


def answer(
    given: argparse.Namespace,
    result: Any,
    as_dict: Callable[[Any], dict[str, Any]],
    as_table: Callable[[Any], Table],
    show: Callable[[Any], None],
    draw: Callable[[Any], Any] | None = None,
) -> None:
    """Print a result in the requested format, and draw it if a picture was requested."""
    if getattr(given, "picture", None) is not None:
        from holoctl.app.design_plot import draw_result, save

        save((draw or draw_result)(result), given.picture)
    if given.json:
        print(json.dumps(plain(as_dict(result)), indent=2))
    elif given.csv:
        header, rows = as_table(result)
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    else:
        show(result)


def write_table(rows: Sequence[tuple[Any, ...]], units: Sequence[str] = ()) -> None:
    width = max((len(row[0]) for row in rows), default=0)
    for i, (name, *numbers) in enumerate(rows):
        unit = f" {units[i]}" if units else ""
        print(f"  {name:<{width}}" + "".join(f"  {x + 0.0:12.6g}" for x in numbers) + unit)
