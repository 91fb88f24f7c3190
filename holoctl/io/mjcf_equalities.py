"""Equalities of an MJCF: connects and welds as closures, joints and fixed tendons as couplings, and
tendons between two sites as rods."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from holoctl.base.errors import InputError
from holoctl.constraints.closure import Closure
from holoctl.constraints.constraint_protocol import Constraint
from holoctl.constraints.coupling import Coupling
from holoctl.constraints.rod import Rod
from holoctl.io.mjcf_compiled import CompiledMjcf, MjcfObject
from holoctl.io.mjcf_tendons import not_straight
from holoctl.io.mjcf_tree import SINGLE, MjcfTree, Placed
from holoctl.io.rotations import quaternion
from holoctl.io.xml import blamed_on
from holoctl.mechanism.rigid_constraints import with_hinges

__all__ = ["equalities"]

_WELD, _JOINT, _TENDON = 1, 2, 3  # mjtEq
_SITE = 6  # mjtObj


def equalities(
    found: CompiledMjcf, tree: MjcfTree
) -> tuple[list[tuple[Constraint, bool]], list[str]]:
    """A `Closure`, `Rod` or `Coupling` for each equality, checked against the model, and whether it
    is active; and the names of those between parts of one body, which constrain nothing."""
    m, data = found.model, tree.model.createData()
    pin.forwardKinematics(tree.model, data, tree.home)
    names: dict[str, int] = {}
    rows, idle = list[tuple[Constraint, bool]](), list[str]()
    for i, part in enumerate(found.equalities):
        with blamed_on(part.place):
            row: Closure | Rod | Coupling | None = None
            if m.eq_type[i] == _TENDON and (row := _rod(found, tree, i, names)) is not None:
                pass
            elif m.eq_type[i] in (_JOINT, _TENDON):
                row = _coupling(found, tree, i, names)
            else:
                a, b, ends = _ends(found, tree, i, data)
                label = _label(part, ends, names)
                if a[0] == b[0] and ends[0] != ends[1]:
                    idle.append(label)
                    continue
                # MuJoCo multiplies the rows of a weld's orientation by torquescale: zero leaves
                # the anchor alone.
                weld = m.eq_type[i] == _WELD and m.eq_data[i, 10] != 0.0
                joint = "weld" if weld else "spherical"
                names_of = tree.model.names
                row = Closure(
                    (names_of[a[0]], a[1]), (names_of[b[0]], b[1]), joint=joint, name=label
                )
            row.bind(tree.model, row.default_name, tree.home)
        rows.append((row, bool(m.eq_active0[i])))
    return with_hinges(rows), idle


def _label(part: MjcfObject, ends: Sequence[str], names: dict[str, int]) -> str:
    """The name of an equality, else those of its ends; with a number if it is used already."""
    label = part.name or "-".join(ends)
    names[label] = names.get(label, 0) + 1
    if names[label] == 1:
        return label
    if part.name:
        raise part.place.error(f"two equalities are called {label!r}")
    return _label(part, (*ends, str(names[label])), names)


def _ends(
    found: CompiledMjcf, tree: MjcfTree, i: int, data: pin.Data
) -> tuple[Placed, Placed, list[str]]:
    """The two frames of a connect or weld, and the names of their bodies or sites."""
    m, ids = found.model, (found.model.eq_obj1id[i], found.model.eq_obj2id[i])
    if m.eq_objtype[i] == _SITE:
        (j, A), (k, B) = (tree.sites[x] for x in ids)
        return (j, A), (k, B), [found.sites[x].name for x in ids]
    (j, A), (k, B) = (tree.bodies[x] for x in ids)
    ends = [tree.body_names[x] for x in ids]
    anchor = pin.SE3(np.eye(3), np.array(m.eq_data[i, :3]))
    if m.eq_type[i] == _WELD:  # relpose is the pose of the anchor, not of body 2
        pose = pin.SE3(quaternion(*m.eq_data[i, 6:10].tolist()), np.array(m.eq_data[i, 3:6]))
        return (j, A * pose), (k, B * anchor), ends
    # of body 2 in body 1, at the initial configuration
    between = (data.oMi[j] * A).actInv(data.oMi[k] * B)
    return (j, A * anchor), (k, B * between.inverse() * anchor), ends


def _rod(found: CompiledMjcf, tree: MjcfTree, i: int, names: dict[str, int]) -> Rod | None:
    """The constant length of a tendon between two sites; None for any other equality."""
    m, part = found.model, found.equalities[i]
    t = int(m.eq_obj1id[i])
    if m.eq_obj2id[i] >= 0 or found.arms(t) is not None or not_straight(found, t):
        return None
    sites = [int(m.wrap_objid[m.tendon_adr[t] + k]) for k in (0, 1)]
    (j, A), (k, B) = (tree.sites[x] for x in sites)
    length = float(m.tendon_length0[t] + m.eq_data[i, 0])
    label = _label(part, [found.tendons[t].name or f"tendon {t}"], names)
    return Rod((str(tree.model.names[j]), A), (str(tree.model.names[k]), B), length, name=label)


def _coupling(found: CompiledMjcf, tree: MjcfTree, i: int, names: dict[str, int]) -> Coupling:
    """``s1 = a0 + a1 s2`` for coordinates, or for lengths of fixed tendons, relative to the initial
    configuration; the second may be missing."""
    m, part = found.model, found.equalities[i]
    ids = [int(x) for x in (m.eq_obj1id[i], m.eq_obj2id[i]) if x >= 0]
    sums = [_sum(found, tree, int(m.eq_type[i]), k) for k in ids]
    ends = [name for name, _ in sums]
    a0, a1, *higher = m.eq_data[i, :5].tolist()
    coefficients = dict(sums[0][1])
    if len(ids) == 2:
        if any(higher):
            raise part.place.error(
                f"{part.place}: polycoef: only the first two coefficients are read, for a line; "
                "make a polynomial of higher order a hc.Custom, and add it with "
                "mech.with_constraints"
            )
        for name, x in sums[1][1].items():
            coefficients[name] = coefficients.get(name, 0.0) - a1 * x
    coefficients = {name: x for name, x in coefficients.items() if x}
    if not coefficients:
        raise part.place.error(
            f"{part.place}: the equality constrains nothing: its coordinates cancel each other"
        )
    return Coupling(coefficients, offset=a0, name=_label(part, ends, names))


def _sum(found: CompiledMjcf, tree: MjcfTree, kind: int, k: int) -> tuple[str, dict[str, float]]:
    """The name of a joint or fixed tendon, and its length as a sum of coordinates."""
    if kind == _JOINT:
        if tree.kinds[k] not in SINGLE:
            raise InputError(f"{tree.joint(k)!r} is not a hinge or slide")
        return tree.joint(k), {tree.joint(k): 1.0}
    name, arms = found.tendons[k].name, found.arms(k)
    if arms is None:
        raise InputError(
            f"{name!r} is not a <fixed> tendon, so its length is not a sum of coordinates; use "
            "hc.Rod on the mechanism for a straight one, hc.Custom for others"
        )
    return name, {tree.joint(j): x for j, x in arms.items()}
