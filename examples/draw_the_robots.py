"""All robots that come with the library, in one picture; one more is opened by hand.

Motors are filled, closures are rings, triangles stand on the ground, and what does not meet is
red. Needs the extra `holoctl[plot]`; writes out/robots.png.
"""

from pathlib import Path

import matplotlib.pyplot as plt

import holoctl as hc

figure = plt.figure(figsize=(8.25, 9.0))
figure.subplots_adjust(0.02, 0.03, 0.98, 0.93, 0.1, 0.15)


def place(i, title, space):
    """The i-th axes, without ticks."""
    ax = figure.add_subplot(3, 3, i, projection="3d" if space else None)
    ax.set_axis_off()
    ax.set_title(title)
    return ax


for i, name in enumerate(hc.robot_names(), start=1):
    mech = hc.load(hc.robot_file(name))
    q, _ = hc.assemble(mech)
    hc.draw(mech, q, place(i, name, space=name not in ("five_bar", "four_bar")))

five_bar = hc.load(hc.robot_file("five_bar"))
q, _ = hc.assemble(five_bar)
ax = place(8, "five_bar, one elbow turned", space=False)
hc.draw(five_bar, q, ax, color="0.85")
q[1] -= 0.3  # the loop is open
hc.draw(five_bar, q, ax)
print("open by", f"{hc.constraint_errors(five_bar, q).closure:.2f} of the size of the loop")

leg = hc.load(hc.robot_file("leg"), free_flyer=True)
q, _ = hc.assemble(leg)
hc.draw(leg, q, place(9, "leg, afloat, from the side", space=False), "xz", frames=["pelvis"])
path = Path("out/robots.png")
path.parent.mkdir(parents=True, exist_ok=True)
figure.savefig(path, dpi=80)
