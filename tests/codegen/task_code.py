"""Laws of tasks as expressions, compiled and exported: states, references, and what is compared."""

from __future__ import annotations

from functools import cache

import numpy as np
import pinocchio as pin
from support import mechanism

import holoctl as hc
from holoctl.codegen.expressions import symbolic
from holoctl.codegen.laws.task import task_function
from holoctl.codegen.laws.task_rows import reference_value
from holoctl.codegen.task_law_options import TaskSubject, task_subject_of

TILTED = ("universe", pin.SE3(pin.rpy.rpyToMatrix(0.2, -0.4, 0.3), np.array([0.1, -0.2, 0.3])))
FULL = np.array([[500.0, 60.0], [60.0, 300.0]])


@cache
def robot(name):
    return hc.load(hc.robot_file(name))


def frame(mech, axes, **options):
    """A task of the last frame."""
    names = {"five_bar": "tip_right", "delta": "platform", "stewart": "platform"}
    return hc.FrameTask(names.get(mech.name, mech.model.frames[-1].name), axes, **options)


@cache
def laws(name):
    """Name to controller, of one robot."""
    mech = robot(name)
    whole = {"five_bar": "x z", "delta": "x y z", "stewart": "x y z rx ry rz"}.get(name, "x z")
    task, few = frame(mech, whole), frame(mech, "z")
    found = {
        "whole": hc.TaskSpaceControl(mech, task, 400.0, 40.0),
        "other axes": hc.TaskSpaceControl(mech, frame(mech, whole, relative_to=TILTED), 4.0, 40.0)
        if name != "five_bar" else hc.TaskSpaceControl(mech, frame(mech, "ry z"), 400.0, 40.0),
        "few, braked": hc.TaskSpaceControl(mech, few, 400.0, 40.0),
        "few, held": hc.TaskSpaceControl(
            mech, few, 400.0, 40.0, posture=mech.motor_positions(mech.reference), posture_kp=7.0
        ),
        "posture": hc.TaskSpaceControl(mech, hc.PostureTask(), 400.0, 40.0),
        "mass": hc.TaskSpaceControl(mech, hc.CenterOfMassTask("z x"), 400.0, 40.0),
        "natural": hc.Impedance(mech, task, 500.0, 30.0),
        "natural, few": hc.Impedance(mech, few, 500.0, 30.0),
        "critical": hc.Impedance(mech, task, np.diag(np.arange(1.0, 1 + len(whole.split()))),
                                 "critical"),
        "wanted": hc.Impedance(mech, task, 500.0, "critical", inertia=2.0),
        "damped": hc.TaskSpaceControl(mech, task, 400.0, 40.0, at_singular="damp"),
        "damped, few": hc.TaskSpaceControl(mech, few, 400.0, 40.0, at_singular="damp"),
        "damped, critical": hc.Impedance(mech, task, 500.0, "critical", at_singular="damp"),
    }  # fmt: skip
    if name == "five_bar":
        found["full gains"] = hc.TaskSpaceControl(mech, task, FULL, 0.1 * FULL)
        found["full inertia"] = hc.Impedance(mech, task, FULL, 0.1 * FULL, 0.01 * FULL)
        found["full critical"] = hc.Impedance(mech, task, FULL, "critical")
        local = frame(mech, "y rz", local=True)
        found["local"] = hc.TaskSpaceControl(mech, local, 400.0, 40.0)
    if name == "stewart":
        found["local"] = hc.TaskSpaceControl(mech, frame(mech, whole, local=True), 400.0, 40.0)
        for axes in ("rz", "rx", "ry rz", "rz x rx", "rx ry", "ry rz rx"):
            for local in (False, True):
                task = frame(mech, axes, local=local)
                found[f"{axes} {local}"] = hc.TaskSpaceControl(mech, task, 400.0, 40.0)
        task = frame(mech, "z ry", relative_to=mech.model.names[1])
        found["relative"] = hc.TaskSpaceControl(mech, task, 400.0, 40.0)
    return found


class Law:
    """The law of a controller, evaluated by CasADi."""

    def __init__(self, controller):
        self.controller = controller
        self.subject = task_subject_of(controller, "compiled")
        E = symbolic(self.subject.mech, self.subject.partition)
        self.function = task_function(E, self.subject)

    def __call__(self, q, v, reference, t=0.0):
        """u and guard."""
        (wanted,) = self.subject.own.wanted(reference)
        value = reference_value(self.subject.task, wanted.value)
        u, guard = self.function(q, v, value, wanted.rate, wanted.acceleration, t)
        return np.array(u).ravel(), float(guard)


def states(mech, count, rng, spread=0.2):
    """Closed and moving states around the reference, and some a little open."""
    found = []
    while len(found) < count:
        step = spread * rng.normal(size=mech.nv) * mech.column_scale
        speed = rng.normal(size=mech.nv) * mech.column_scale
        try:
            q, v = hc.assemble(
                mech, pin.integrate(mech.model, mech.reference, step), speed, restarts=0
            )
        except hc.AssemblyError:
            continue
        if len(found) % 3 == 0:
            off = 1e-4 * rng.normal(size=(2, mech.nv)) * mech.column_scale
            q, v = pin.integrate(mech.model, q, off[0]), v + off[1]
        found.append((q, v))
    return found


def reference(controller, q, v, rng):
    """Anything: far off, and turned by any angle."""
    task = TaskSubject(controller).task
    value = task.at(hc.project(controller.mech, q, v).kinematics).value
    rows = task.scale.size
    if isinstance(value, pin.SE3):
        value = pin.SE3(
            pin.Quaternion(*_unit(rng)).matrix(), value.translation + rng.normal(size=3)
        )
    else:
        value = value + 0.3 * rng.normal(size=rows)
    return value, rng.normal(size=rows), 5.0 * rng.normal(size=rows)


def _unit(rng):
    x = rng.normal(size=4)
    return x / np.linalg.norm(x)


def zoo_law(name):
    """A frame's axes that its motions move, as many as can be, of a mechanism of the zoo."""
    mech = mechanism(name)
    q, v = hc.assemble(mech)
    P = hc.project(mech, q, v)
    best = ()
    for f in reversed(list(mech.model.frames)[1:]):
        chosen = ()
        for axis in ("x", "y", "z", "rx", "ry", "rz"):
            try:
                terms = hc.task_terms(P, hc.FrameTask(f.name, (*chosen, axis)))
            except hc.InputError:
                break
            if terms.condition < 100.0:
                chosen = (*chosen, axis)
        if len(chosen) > len(best):
            best, chosen_frame = chosen, f.name
    return hc.Impedance(mech, hc.FrameTask(chosen_frame, best), 50.0, "critical")
