"""Ask what is the matter with a mechanism before computing a torque: a five-bar, well and ill."""

import numpy as np

import holoctl as hc

robot = hc.load(hc.robot_file("five_bar"))
report = hc.mobility(robot)
print(report, end="\n\n")

# The same for a program: leave out what is redundant, and compare what is left.
print("as data:", {name: report.to_dict()[name] for name in ("dof", "redundant", "independent")})

# A rod that blocks one motion, and one motor too many for what is left.
crossed = robot.with_constraints(hc.Rod("elbow_left", "elbow_right", name="strut"))
report = hc.mobility(crossed)
print(f"\nwith a strut: {report.dof} motion, {report.actuation} actuated")
assert report.actuation == "redundantly"

# A strut that cannot be mounted: which rows contradict each other?
impossible = robot.with_constraints(hc.Rod("elbow_left", "elbow_right", length=5.0, name="strut"))
report = hc.mobility(impossible)
print("a strut too long cannot be met:", ", ".join(report.contradictions))
assert not report.closed
assert np.isfinite(report.error)
