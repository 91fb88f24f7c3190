"""The README's program runs and prints what the README says."""

from __future__ import annotations

import re

from support import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language):
    (found,) = re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)
    return found


def rounded(text):
    """Sizes of rounding errors differ between machines: 2.2e-16 becomes ~0."""
    return re.sub(r"\d(\.\d)?e-1[1-9]", "~0", text).split()


def test_the_program_of_the_readme_prints_what_it_says(tmp_path, monkeypatch, capfd):
    """In this process, which has imported already what the program imports."""
    monkeypatch.chdir(tmp_path)
    exec(block("python"), {"__name__": "__main__"})  # our own page
    out, err = capfd.readouterr()
    assert err == ""
    assert rounded(out) == rounded(block("text"))


def test_it_is_short():
    lines = [line for line in block("python").splitlines() if line.strip()]
    assert len(lines) <= 25
