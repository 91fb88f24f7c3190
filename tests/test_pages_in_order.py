"""Tutorials do, from top to bottom in one folder, what they say."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pytest
from pages import ALL_PAGES, DOCS, blocks, is_one_program, rounded
from support import few

from holoctl.app.cli import main
from holoctl.constraints.closure import JOINTS

PAGES = [page for page in ALL_PAGES if is_one_program(page)]
LONG = ("tutorial-delta", "tutorial-five-bar", "tutorial-identification", "tutorial-own-robot")
QUICK = [page for page in PAGES if page.stem not in LONG]
"""The short run's: the others simulate for long what other tests do too."""


@pytest.mark.parametrize("page", few(PAGES, QUICK), ids=lambda page: page.stem)
def test_a_page_does_what_it_says_from_top_to_bottom(page, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    with np.printoptions():  # a page may set them for all that follows on it
        for block in blocks(page):
            if block.title:
                (tmp_path / block.title).write_text(block.text, encoding="utf-8")
            if block.language == "python":
                exec(compile(block.text, page.name, "exec"), names)  # our own page
            elif block.language == "console":
                program, *arguments = shlex.split(block.text.removeprefix("$ "))
                assert program == "holoctl"
                main(arguments)
            found = capfd.readouterr().out
            assert rounded(found) == rounded(block.printed or ""), f"after {block.text[:300]}"


def test_there_are_such_pages():
    assert {page.stem for page in PAGES} >= {"tutorial-delta", "tutorial-five-bar", "closing-axes"}


def test_the_table_of_joints_has_the_rows_of_each():
    text = (DOCS / "closing-axes.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]+) \|", text, flags=re.MULTILINE))
    assert told == {joint: " ".join(row.label for row in rows) for joint, rows in JOINTS.items()}
