"""Output of commands: tables, CSV, JSON."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from holoctl.base.errors import InputError
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
    page: Callable[[Any], str] | None = None,
) -> None:
    """Print a result in the requested format, and write the files of ``--out``; `page` gives the
    text of an HTML file.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    for path in given.out:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix.lower() == ".json":
                path.write_text(_json(as_dict(result)), "utf-8")
            elif path.suffix.lower() == ".csv":
                with path.open("w", newline="", encoding="utf-8") as file:
                    _write_csv(file, as_table(result))
            elif path.suffix.lower() == ".npz":
                result.save(path)
            elif page is not None and path.suffix.lower() == ".html":
                path.write_text(page(result), "utf-8")
            else:
                from holoctl.app.design_plot import draw_result

                (draw or draw_result)(result).savefig(path, dpi=120)
        except (OSError, ValueError) as error:
            raise InputError(f"--out: {path} cannot be written: {error}") from None
    if given.json:
        sys.stdout.write(_json(as_dict(result)))
    elif given.csv:
        _write_csv(sys.stdout, as_table(result))
    else:
        show(result)
    for path in () if given.json or given.csv else given.out:
        print(f"written: {path}")


def _json(found: dict[str, Any]) -> str:
    return json.dumps(plain(found), indent=2) + "\n"


def _write_csv(file: Any, table: Table) -> None:
    header, rows = table
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)


def write_table(rows: Sequence[tuple[Any, ...]], units: Sequence[str] = ()) -> None:
    width = max((len(row[0]) for row in rows), default=0)
    for i, (name, *numbers) in enumerate(rows):
        unit = f" {units[i]}" if units else ""
        print(f"  {name:<{width}}" + "".join(f"  {x + 0.0:12.6g}" for x in numbers) + unit)
