"""Where a five-bar gets to, what holding it there takes, and how well its motors hold. Draws it."""

import sys
from pathlib import Path

import numpy as np

import holoctl as hc

if __name__ == "__main__":  # other processes import this file
    mech = hc.load(hc.robot_file("five_bar"))
    tip = hc.FrameTask("tip_right", "x z")
    xs, zs = np.linspace(-0.5, 0.5, 41), np.linspace(0.05, 0.65, 31)
    found = hc.motor_map(
        mech, (tip, xs, zs), ["torque", "condition", "velocity", "force"], limits=None, executor=2
    )
    print(found)
    held = np.abs(found.torque).max(axis=-1)
    worst = np.unravel_index(np.nanargmax(held), held.shape)
    print(f"reachable: {100 * found.reachable.mean():.0f} % of the grid")
    print(f"largest holding effort: {held[worst]:.2f} N m at x = {xs[worst[0]]:.2f} m,", end=" ")
    print(f"z = {zs[worst[1]]:.2f} m")
    best = np.unravel_index(np.nanargmin(found.condition), held.shape)
    print(f"best condition: {found.condition[best]:.2f} at x = {xs[best[0]]:.2f} m,", end=" ")
    print(f"z = {zs[best[1]]:.2f} m")

    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SystemExit("(no picture: pip install 'holoctl[plot]')") from None

    with hc.style("page", height="45 mm"):
        figure = Figure()
        titles = {
            "torque": "holding efforts",
            "condition": "condition number",
            "velocity": "velocity",
        }
        for ax, (what, title) in zip(figure.subplots(1, 3), titles.items(), strict=True):
            found.plot(what, ax=ax)
            ax.set_title(title)
        path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/map_a_workspace.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    print(f"the picture: {path}")
