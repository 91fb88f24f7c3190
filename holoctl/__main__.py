"""``python -m holoctl``: the command line."""

from __future__ import annotations

import sys

from holoctl.app.cli import main

if __name__ == "__main__":
    sys.exit(main())
