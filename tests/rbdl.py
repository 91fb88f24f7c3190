"""Reference numbers from RBDL, and the same mechanisms built for holoctl.

The files and their conventions: golden/rbdl/README.md.
"""

from __future__ import annotations

import json
from functools import cache
from itertools import groupby
from pathlib import Path

import numpy as np
import pinocchio as pin

import holoctl as hc

GOLDEN = Path(__file__).parent / "golden" / "rbdl"
BIPEDS = ("biped_double", "biped_single")
LOOPS = ("fourbar", "spatial3", "spatial6", "slider_gear")
CASES = (*LOOPS, *BIPEDS)

TOLERANCE = 1e-9
"""Of `off`: what the README of the files calls a fair test."""

JOINTS = {
    "RX": pin.JointModelRX, "RY": pin.JointModelRY, "RZ": pin.JointModelRZ,
    "PX": pin.JointModelPX, "PY": pin.JointModelPY, "PZ": pin.JointModelPZ,
}  # fmt: skip

AXES = {
    (1, 0, 0, 0, 0, 0): "rx", (0, 1, 0, 0, 0, 0): "ry", (0, 0, 1, 0, 0, 0): "rz",
    (0, 0, 0, 1, 0, 0): "x", (0, 0, 0, 0, 1, 0): "y", (0, 0, 0, 0, 0, 1): "z",
}  # fmt: skip
"""An axis of a loop in RBDL (angular, linear), and what `hc.Closure` calls it."""


@cache
def golden(name):
    """One file."""
    return json.loads((GOLDEN / f"{name}.json").read_text())


def states(name, on_manifold=None):
    """The states of a file: all, or those on (off) the manifold."""
    return [
        s for s in golden(name)["states"] if on_manifold is None or s["on_manifold"] == on_manifold
    ]


def comparable(name):
    """States where RBDL's rows are ours: all for contacts, those on the manifold for loops."""
    return states(name, None if name in BIPEDS else True)


def array(x):
    """Numbers of a file."""
    return np.array(x, dtype=float)


def off(ours, theirs):
    """Largest difference over (1 + largest entry of theirs)."""
    ours, theirs = array(ours), array(theirs)
    assert ours.shape == theirs.shape
    return float(np.abs(ours - theirs).max(initial=0.0) / (1.0 + np.abs(theirs).max(initial=0.0)))


def place(rotation, translation):
    return pin.SE3(array(rotation), array(translation))


def tree(name):
    """The tree: joint i + 1 of Pinocchio is coordinate i of the file."""
    data = golden(name)["model"]
    model = pin.Model()
    model.name = name
    model.gravity.linear = array(data["gravity"])
    for i, body in enumerate(data["bodies"]):
        at = place(body["rotation"], body["translation"])
        j = model.addJoint(body["parent"] + 1, JOINTS[body["joint"]](), at, body["name"])
        assert j == i + 1
        assert model.idx_vs[j] == i  # the files number depth-first, as Pinocchio wants it
        if body["mass"]:
            inertia = pin.Inertia(body["mass"], array(body["com"]), array(body["inertia_com"]))
            model.inertias[j] = inertia
    return model


def end_of(loop, end):
    """Where the frame of the "predecessor" or "successor" is on its body."""
    return place(loop[f"{end}_rotation"], loop[f"{end}_translation"])


def frame(model, body, at):
    """A frame on a body, -1 for the world."""
    return ("universe" if body < 0 else model.names[body + 1], at)


def constraints(name, model):
    """The constraints, rows in the order of the file."""
    found = []
    for (kind, called), members in groupby(
        golden(name)["constraints"], lambda c: (c["type"], c["name"])
    ):
        entries = list(members)
        c = entries[0]
        if kind == "contact":  # RBDL has one row an entry, here all rows of a point are one
            assert all((e["body"], e["point"]) == (c["body"], c["point"]) for e in entries)
            point = frame(model, c["body"], place(np.eye(3), c["point"]))
            normal, *tangents = [e["normal"] for e in entries]
            found.append(hc.Contact(point, normal, tangents or False, name=called))
        elif kind == "loop":
            a, b = (frame(model, c[end], end_of(c, end)) for end in ("predecessor", "successor"))
            axes = " ".join(AXES[tuple(axis)] for axis in c["axes"])
            found.append(hc.Closure(a, b, axes=axes, name=called))
        else:
            driver, driven = (model.names[c[end] + 1] for end in ("driver", "driven"))
            ratio = {driven: 1.0, driver: -c["ratio"]}
            found.append(hc.Coupling(ratio, offset=c["offset"], name=called))
    return found


def build(name, reference=None):
    """The mechanism of a file. Contacts hold their points where they are at the reference."""
    model = tree(name)
    motors = [n for n, driven in zip(model.names[1:], golden(name)["actuated"], strict=True)
              if driven]  # fmt: skip
    if reference is None:
        reference = states(name, True)[0]["q"]
    return hc.Mechanism(model, constraints(name, model), motors, reference=reference)


@cache
def mechanism(name):
    """The mechanism of a file, contacts placed by its first state."""
    return build(name)


@cache
def partition(name):
    """Decided once, at the first state of the file."""
    return hc.partition(mechanism(name), states(name, True)[0]["q"])


def wrenches(model, q, external):
    """RBDL's external wrenches, (moment, force) about the world origin, as `f_ext`."""
    data = model.createData()
    pin.forwardKinematics(model, data, array(q))
    f_ext = {}
    for body, wrench in zip(external["bodies"], array(external["wrench_world"]), strict=True):
        moment, force = wrench[:3], wrench[3:]
        origin = data.oMi[body + 1].translation
        about_origin = moment - np.cross(origin, force)
        f_ext[model.names[body + 1]] = np.concatenate([force, about_origin])
    return f_ext


def to_rbdl(name, q):
    """T with ``G_rbdl = T G``, on the manifold: RBDL adds linear rows to its angular ones.

    RBDL moves the axis w of an angular row to the world origin by ``p_P x w``, with p_P in world
    axes and w in those of frame P. The result counts as components along the axes of P.
    """
    loop = golden(name)["constraints"][0]  # each file has one loop at most, and first
    rows = [AXES[tuple(axis)] for axis in loop["axes"]]
    T = np.eye(len(golden(name)["states"][0]["gamma"]))
    model = tree(name)
    data = model.createData()
    pin.forwardKinematics(model, data, array(q))
    p = data.oMi[loop["predecessor"] + 1].act(array(loop["predecessor_translation"]))
    for i, row in enumerate(rows):
        if row.startswith("r"):
            moved = -np.cross(p, np.eye(3)["xyz".index(row[1])])
            for axis, along in zip("xyz", moved, strict=True):
                T[i, rows.index(axis)] += along
    return T
