"""Mechanisms to examine, and what was said of them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
from linkages import add_bar, planar
from scipy.linalg import subspace_angles
from zoo import DEAD_CENTRE, at, slider_crank

import holoctl as hc
from holoctl.closing.nearby_configurations import nearby_configurations
from holoctl.rows.evaluate import constraint_rows


def assembled(case, **options):
    mech = case.mechanism(**options)
    return mech, hc.assemble(mech)[0]


def walk(mech, q, count, seed=0):
    """Generic closed configurations, each a few steps from the one before."""
    found = [q]
    while len(found) < count:
        reached = nearby_configurations(mech, found[-1], count=2, step=0.15, seed=seed + len(found))
        if not reached:
            return [q]  # rigid
        found.append(reached[len(found) % len(reached)])
    return found


def said(report):
    """The text on one line."""
    return " ".join(str(report).split())


def verdicts(report):
    """What does not depend on how the tree was cut."""
    locked = {name.split("[")[0] for name in report.locked_joints}
    return {
        "dof": report.dof,
        "finite": report.finite_dof,
        "repeated": report.rows - report.active,
        "redundant": len(report.redundant),
        "gruebler": report.gruebler,
        "generic": report.open_dof - report.generic_rank,
        "idle": sorted(report.idle),
        "locked": locked,
        "singular": report.singular,
        "actuation": report.actuation,
        "undriven": len(report.undriven),
    }


def positions(mech, q, other):
    """The positions of the joints of `other`'s tree, read in `mech`, where they may be cut."""
    names = {n.split("[")[0] for n in list(other.model.names)[1:]}
    found = {}
    for name in names:
        if name in other.constraint_names:
            continue  # divided: it is in both
        value = hc.joint_motion(mech, name, q).value
        found[name] = float(value[0]) if value.size == 1 else value
    return found


def motions_without(mech, q, rows=()):
    """The range of gamma: velocities that the rows allow, without some of them; scaled."""
    _, r = constraint_rows(mech, q, np.zeros(mech.nv))
    G = mech.row_scale[:, None] * r.jacobian * mech.column_scale
    keep = [i for i, n in enumerate(mech.row_names) if n not in rows]
    if not keep:
        return np.eye(mech.nv)
    _, s, vt = np.linalg.svd(G[keep])
    return vt[np.count_nonzero(s > 1e-7) :].T


def check_redundant_rows(mech, q):
    report = hc.mobility(mech, q)
    everything = motions_without(mech, q)
    assert everything.shape[1] == report.dof
    without = motions_without(mech, q, report.redundant)
    assert without.shape == everything.shape
    if report.dof:
        assert subspace_angles(without, everything).max() < 1e-8
    for row in report.essential:
        assert motions_without(mech, q, [row]).shape[1] == report.dof + 1
    repeated = {row for g in report.groups for row in (*g.redundant, *g.among)}
    assert repeated | set(report.essential) == set(mech.row_names)
    assert not repeated & set(report.essential)
    for row in repeated:
        assert motions_without(mech, q, [row]).shape[1] == report.dof
    return report


def bars(name, lengths, ground):
    """Bars in a row between the origin and x = ground, all hinges parallel; the last is cut."""
    link = planar(name, 1.0)
    body, end = "universe", pin.SE3.Identity()
    for i, length in enumerate(lengths):
        add_bar(link, f"bar_{i}", length, 1.0)
        link.add_joint(f"hinge_{i}", "revolute", body, f"bar_{i}", end)
        body, end = f"bar_{i}", at(length)
    link.add_joint("last", "revolute", body, "universe", end, at(ground))
    return link


def gears(*more, offset=0.0):
    m = pin.Model()
    for name in "ab":
        j = m.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), name)
        m.appendBodyToJoint(j, pin.Inertia(1.0, np.zeros(3), np.eye(3)), pin.SE3.Identity())
    gear = hc.Coupling({"a": 1, "b": -2}, offset=offset, name="gear")
    return hc.Mechanism(m, [gear, *more], ["a"], name="gears")


def at_the_dead_centre(motor):
    return dataclasses.replace(slider_crank(motor), reference=DEAD_CENTRE)


def folded_parallelogram():
    link = bars("folded", [0.3, 0.7, 0.3], 0.7)
    return link.mechanism(["last"], ["hinge_0"], {"hinge_2": np.pi})


def too_long():
    guess = {"hinge_0": 0.9, "hinge_1": -1.5}
    return bars("too_long", [0.3, 0.4], 0.9).mechanism(["last"], reference=guess)
