"""The five mechanisms of "Kinematic loops", the post on joints in SymPy: counts.

Counts of the post: tests/linkages.py has its table. SymPy, as the post proposes: all rows of the
joint that closes the loop, as expressions of the coordinates; the rank of their Jacobian tells how
many are active.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from scipy.optimize import least_squares

import holoctl as hc

sys.path.append(str(Path(__file__).parents[2] / "tests"))

import linkages

Array = NDArray[np.float64]
FIVE = ("four_bar", "triangle", "spherical_loop", "umbrella", "double_link")
SMALL = 1e-7
"""Relative: what a singular value below it is not counted."""


@dataclass(frozen=True)
class Counts:
    """Open freedoms, active rows, closed freedoms."""

    open: int
    active: int
    closed: int

    def __str__(self) -> str:
        return f"{self.open} - {self.active} = {self.closed}"


def published(name: str) -> Counts:
    """As the post tells."""
    e = linkages.LINKAGES[name]().expected
    return Counts(e.open_dof, e.active, e.closed_dof)


def holoctl_counts(name: str) -> Counts:
    """`hc.mobility`."""
    report = hc.mobility(linkages.LINKAGES[name]().mechanism())
    return Counts(report.open_dof, report.active, report.dof)


def sympy_counts(name: str) -> Counts:
    """By the rank of the Jacobian of SymPy's expressions, at a closed posture."""
    case = linkages.LINKAGES[name]()
    rows, q, guess = expressions(case)
    value = sp.lambdify([q], rows, "numpy")
    slope = sp.lambdify([q], rows.jacobian(q), "numpy")
    closed = least_squares(
        lambda x: np.ravel(value(x)), guess, lambda x: np.array(slope(x), float),
        xtol=1e-15, ftol=1e-15, gtol=1e-15,
    )  # fmt: skip
    if closed.cost > 1e-20:
        raise RuntimeError(f"{name} does not close")
    sizes = np.linalg.svd(np.array(slope(closed.x), float), compute_uv=False)
    active = int((sizes > SMALL * sizes[0]).sum())
    return Counts(len(q), active, len(q) - active)


def expressions(case: linkages.Case) -> tuple[sp.Matrix, list[sp.Symbol], list[float]]:
    """Rows of the cut joints, the coordinates of the others, and the start of the search."""
    place: dict[str, sp.Matrix] = {"universe": sp.eye(4)}
    q: list[sp.Symbol] = []
    guess: list[float] = []
    rows: list[Any] = []
    joints = [list(args) for add, args, _ in case.linkage.calls if len(args) >= 4]
    joints = [j for j in joints if isinstance(j[2], str) and isinstance(j[3], str)]
    waiting = [j for j in joints if j[0] not in case.cut]
    while waiting:
        joint = next(j for j in waiting if (j[2] in place) != (j[3] in place))
        waiting.remove(joint)
        name, kind, parent, child = joint[:4]
        ends = [_matrix(joint, 4), _matrix(joint, 5)]
        moved, new = _motion(name, kind)
        start = np.atleast_1d(np.array(case.reference.get(name, 0.0), float))
        q += new
        guess += _angles(start) if kind == "spherical" else list(start)
        if parent in place:
            place[child] = place[parent] * ends[0] * moved * ends[1].inv()
        else:
            place[parent] = place[child] * ends[1] * moved.inv() * ends[0].inv()
    for joint in joints:
        if joint[0] in case.cut:
            a, b = (place[joint[k]] * _matrix(joint, k + 2) for k in (2, 3))
            gap = b[:3, 3] - a[:3, 3]
            rows += list(gap)  # a pin: both points, and both axes square to z of the other
            rows += [a[:3, 0].dot(b[:3, 2]), a[:3, 1].dot(b[:3, 2])]
    return sp.Matrix(rows), q, guess


def _matrix(joint: list[Any], i: int) -> sp.Matrix:
    """The placement of a joint in a body, if it has one."""
    if len(joint) <= i or joint[i] is None:
        return sp.eye(4)
    return sp.Matrix(joint[i].homogeneous)


def _motion(name: str, kind: str) -> tuple[sp.Matrix, list[sp.Symbol]]:
    if kind == "prismatic":
        s = sp.Symbol(name)
        moved = sp.eye(4)
        moved[2, 3] = s
        return moved, [s]
    count = {"revolute": 1, "spherical": 3}[kind]
    symbols = [sp.Symbol(f"{name}_{i}") for i in range(count)]
    turns = (sp.rot_ccw_axis3,) if count == 1 else (
        sp.rot_ccw_axis3, sp.rot_ccw_axis2, sp.rot_ccw_axis1
    )  # fmt: skip
    moved = sp.eye(4)
    for turn, s in zip(turns, symbols, strict=True):
        moved[:3, :3] = moved[:3, :3] * turn(s)
    return moved, symbols


def _angles(quaternion: Array) -> list[float]:
    """About z, y, x, of (x, y, z, w)."""
    if quaternion.size < 4:
        return [0.0, 0.0, 0.0]
    x, y, z, w = quaternion
    return [
        float(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))),
        float(np.arcsin(2 * (w * y - z * x))),
        float(np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))),
    ]
