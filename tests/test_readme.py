"""The README's program runs and prints what the README says."""

from __future__ import annotations

import re
import subprocess
import sys

from support import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language):
    (found,) = re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)
    return found


def rounded(text):
    """Sizes of rounding errors differ between machines: 2.2e-16 becomes ~0."""
    return re.sub(r"\d(\.\d)?e-1[1-9]", "~0", text).split()


def test_the_program_of_the_readme_prints_what_it_says(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", block("python")],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert rounded(done.stdout) == rounded(block("text"))


def test_it_is_short():
    lines = [line for line in block("python").splitlines() if line.strip()]
    assert len(lines) <= 25
