"""Assembly: the nearest closed configuration, with locked joints, or a reason why not."""

import pinocchio as pin

import holoctl as hc

mech = hc.load(hc.robot_file("five_bar"))
guess = pin.neutral(mech.model)
print("names:", mech.coordinate_names)

q, _ = hc.assemble(mech, mech.reference)
print("nearest to the reference:", q.round(4))

left, right = mech.actuated
q, v = hc.assemble(mech, q, v_guess=[1.0, 0.0, 0.5, 0.0], locked=[left])
print(f"with {left} locked:       ", q.round(4), "rates", v.round(4))

try:
    hc.assemble(mech, guess, locked=mech.coordinate_names, restarts=0)
except hc.AssemblyError as error:
    print("AssemblyError:", error)
    print("worst rows:", error.worst[:2])
