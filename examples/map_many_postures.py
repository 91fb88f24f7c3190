"""A map of a five-bar's motors at a million postures: what they hold, and how fast it goes.

Every pair of motor positions is one robot: its closed state, the efforts that hold it, and the
largest acceleration that its motors have to spare upwards. The same on a GPU with device="cuda";
10^8 postures take as long as a hundred of these maps. Draws the efforts.
"""

import sys
import time
from pathlib import Path

import numpy as np

import holoctl as hc

SIDE, REACH = 1000, 1.2  # postures along each axis; rad to each side of home

mech = hc.load(hc.robot_file("five_bar"))
many = hc.compile(mech, ["state", "inverse_dynamics"], device="cpu")
start, _ = hc.assemble(mech)
home = mech.motor_positions(start)
axis = np.linspace(-REACH, REACH, SIDE)
pairs = home + np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, mech.nu)

began = time.perf_counter()
q, _, found = many.state(pairs)
closed = time.perf_counter()
u, held = many.inverse_dynamics(q, np.zeros(mech.nv), np.zeros(mech.nu))
done = time.perf_counter()

print("states:", many.describe(found))
print("efforts:", many.describe(held))
print(f"{len(pairs) / (closed - began):.1e} closed states and {len(pairs) / (done - closed):.1e} "
      "efforts a second")  # fmt: skip
good = held == hc.results.BatchStatus.OK
print(
    f"largest effort that holds it: {np.abs(u[good]).max():.1f} N m; "
    f"within 5 N m at {100.0 * (np.abs(u[good]).max(1) < 5.0).mean():.1f} % of the postures"
)

# ---------------------------------------------------------------------------- the picture

try:
    from matplotlib.figure import Figure
except ImportError:
    raise SystemExit("(no picture: pip install 'holoctl[plot]')") from None

with hc.style("page", height="75 mm"):
    figure = Figure()
    axes = figure.subplots(1, mech.nu, sharey=True)
    for i, (ax, motor) in enumerate(zip(axes, mech.actuator_names, strict=True)):
        drawn = u[:, i].reshape(SIDE, SIDE)[::4, ::4].T
        image = ax.pcolormesh(axis[::4], axis[::4], drawn, vmin=-8.0, vmax=8.0, cmap="RdBu_r")
        ax.set(title=motor, xlabel="left motor from home (rad)")
    axes[0].set_ylabel("right motor from home (rad)")
    figure.colorbar(image, ax=axes, label="effort that holds it (N m)", extend="both")
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/map_many_postures.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
print(f"the picture: {path}")
