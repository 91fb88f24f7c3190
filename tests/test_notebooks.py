"""Notebooks run from a fresh kernel, say nothing in red, and are kept without their outputs."""

from __future__ import annotations

import nbformat
import pytest
from support import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def test_there_is_a_notebook():
    assert NOTEBOOKS


def code(book):
    return [cell for cell in book.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_is_kept_without_outputs(path):
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    assert not [cell for cell in code(book) if cell.outputs or cell.execution_count]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    from nbclient import NotebookClient

    monkeypatch.delenv("MPLBACKEND", raising=False)  # the kernel shows pictures in the notebook
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    book = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(book, timeout=120, kernel_name="python3", resources=where).execute()
    for cell in code(book):
        assert cell.outputs, cell.source
        assert not [x for x in cell.outputs if x.get("name") == "stderr"], cell.source
    shown = [kind for cell in code(book) for x in cell.outputs for kind in x.get("data", {})]
    assert shown.count("image/png") >= 3  # two drawings and a run
    assert "image/gif" in shown
    assert shown.count("text/html") >= 4  # mechanism, report, certificate, run
