"""Pictures drawn anew when the site is built, by `python docs/pictures`.

``HOLOCTL_DOCS_PICTURES=committed`` takes those that are there, which is quicker.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files

log = get_plugin_logger("drawings")

FOLDER = Path(__file__).resolve().parents[1] / "pictures"


def on_files(files: Files, config: Any) -> None:
    """Put what is drawn now in the place of what is in the folder."""
    if os.environ.get("HOLOCTL_DOCS_PICTURES") == "committed":
        return
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # small matrices, and other work beside
    with TemporaryDirectory() as out:
        done = subprocess.run([sys.executable, FOLDER, "--out", out], check=False, env=alone)
        if done.returncode:
            log.warning("python docs/pictures ended with %d", done.returncode)
        for path in sorted(Path(out).glob("*.png")):
            uri = f"pictures/{path.name}"
            if there := files.get_file_from_path(uri):
                files.remove(there)
            files.append(File.generated(config, uri, content=path.read_bytes()))
