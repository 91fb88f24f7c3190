"""MuJoCo on the same model: points as `connect`, springs and rods as tendons; RK4, Newton."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import peers
import pinocchio as pin
from mechanisms import Loop
from numpy.typing import NDArray

import holoctl as hc
from holoctl.tree.frames import resolve_frame
from referee.outcome import Outcome, judged, timed
from referee.problem import Problem, at, positions
from referee.thickened import thickened

Array = NDArray[np.float64]


def mjcf(mech: hc.Mechanism, step: float) -> str:
    """The mechanism as MJCF; constraints as stiff as two steps allow."""
    loops, tendons, held = [], [], ""
    for c in mech.constraints:
        a, b = (resolve_frame(mech.model, f, c.default_name) for f in (c.a, c.b))
        hinge = isinstance(c, hc.Closure) and c.joint == "revolute"
        for z in (0.5, -0.5) if hinge else (0.0,):
            ends = (replace(f, placement=f.placement * at(0.0, 0.0, z)) for f in (a, b))
            loops.append(Loop(c.default_name, False, *ends))
        if isinstance(c, hc.Rod):
            drawn = positions(mech.model, pin.neutral(mech.model), (c.a, c.b))[0]
            longer = c.length - float(np.linalg.norm(drawn[1] - drawn[0]))
            tendons.append((len(loops) - 1, ""))
            held += f'<tendon tendon1="t{len(loops) - 1}" polycoef="{longer} 0 0 0 0"/>\n'
    for s in mech.forces:
        ends = (resolve_frame(mech.model, f, "spring") for f in (s.a, s.b))
        loops.append(Loop(s.default_name, False, *ends))
        springy = f'stiffness="{s.stiffness}" damping="{s.damping}" springlength="{s.length}"'
        tendons.append((len(loops) - 1, springy))
    text = peers.mjcf(thickened(mech.model), loops)
    lines = ""
    for i, springy in tendons:
        text = text.replace(f'<connect site1="{i}a" site2="{i}b"/>\n', "")
        lines += (
            f'<spatial name="t{i}" {springy}><site site="{i}a"/><site site="{i}b"/></spatial>\n'
        )
    text = text.replace("</equality>", f"{held}</equality>\n<tendon>\n{lines}</tendon>")
    stiff = f'<default><equality solref="{2.0 * step} 1" solimp="0.9999 0.9999 0.001"/>'
    option = f'timestep="{step}" integrator="RK4" solver="Newton" tolerance="1e-14"'
    return text.replace("<default>", stiff).replace("<option ", f"<option {option} ")


def outcome(problem: Problem) -> Outcome:
    """The line of the table."""
    import mujoco

    step = problem.steps["MuJoCo"]
    name = f"MuJoCo, RK4, {1e3 * step:g} ms"
    mech, q0, v0 = problem.make()
    m = mujoco.MjModel.from_xml_string(mjcf(mech, step))
    d = mujoco.MjData(m)
    order = [m.joint(n) for n in list(mech.model.names)[1:]]
    at_q, at_v = ([int(getattr(j, x)[0]) for j in order] for x in ("qposadr", "dofadr"))
    d.qpos[at_q], d.qvel[at_v] = q0, v0
    if problem.effort:
        d.qfrc_applied[at_v] = mech.B @ np.array(problem.effort)
    counts = np.diff(np.round(problem.times / step).astype(int), prepend=0)

    def stepped() -> tuple[Array, Array]:
        Q, V = [], []
        for n in counts.tolist():
            if n:
                mujoco.mj_step(m, d, n)
            Q.append(d.qpos[at_q].copy())
            V.append(d.qvel[at_v].copy())
        return np.array(Q), np.array(V)

    found, seconds = timed(stepped)
    Q, V = found  # type: ignore[misc]
    if any(w.number for w in d.warning):
        return Outcome(name, seconds=seconds, word="breaks down")
    return judged(problem, mech, name, Q, V, seconds, steps=int(counts.sum()))
