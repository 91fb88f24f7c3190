"""A robot in the browser: a page that stands alone, and one with sliders.

Writes ``out/delta.html``, which needs no server, no network and no Python: open it, look at it from
all sides, see each of its motions. Needs the extra `view`. With ``--serve`` it also serves the page
with a slider for each motor, until Ctrl-C.
"""

import sys
from pathlib import Path

import holoctl as hc

path = hc.robot_file("delta")
mech = hc.load(path)

saved = hc.save_view(mech, Path("out") / "delta.html", geometry=path)
print(f"{saved}: {saved.stat().st_size / 1e6:.1f} MB, stands alone")

with hc.view(mech, geometry=path, port=0) as page:
    print(
        f"{mech.name} is served; it is closed to {hc.constraint_errors(mech, page.q).closure:.0e}"
    )
    if "--serve" in sys.argv:
        print(f"{page.url} (ends with Ctrl-C)")
        page.wait()
