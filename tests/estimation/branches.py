"""Which branch is meant: an oracle that walks the straight way of the sensors in equal steps.

    m(l) = s(q0) + l dm        l = 1/n, 2/n, ..., 1        d = gamma dm / n, then Newton

Of its own code: rows as `constraint_rows` has them, sensors by their names, singular values for
rank and steps. No determinants, no step control: where a step is doubtful there is no oracle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

import holoctl as hc
from holoctl.rows.evaluate import constraint_rows
from holoctl.tree.frozen_model import plain

QUICKLY, CLOSED_TO = 7, 1e-10
"""So many corrections of a step, and what they reach, scaled."""
DOUBTFUL, HOPELESS = 30.0, 1e3
"""Gains from which on the way is walked again in half steps, and where it is given up."""


@dataclass(frozen=True)
class Way:
    """Where a straight way of the sensors led.

    Attributes
    ----------
    q : (nq,) array
    sure : bool
        Whether every step was short and quick; else q means nothing.
    gain : float
        The largest row of gamma met: noise of the worst coordinate by that of the sensors.
    along : float
        The largest |d_U| / |dm| met, along the way itself.
    why : str
        Why it is not sure.
    crossed : bool
        Whether the rows lose rank on the way, or within a step of it. Branches may cross there, and
        steps that stride over it go straight on; but what is known before does not prove that.
    """

    q: np.ndarray
    sure: bool
    gain: float
    along: float
    why: str = ""
    crossed: bool = False


def crossing(before, here):
    """Whether the least singular value of the rows, which is so large at two neighbouring steps,
    vanishes between them or within one more step, if it goes on as between them."""
    return np.minimum(before, here) <= np.abs(here - before)


class Oracle:
    """Sensors of a mechanism by name, and ways from one closed configuration to another."""

    def __init__(self, mech, measured, q, t=0.0):
        self.mech, self.names = mech, tuple(measured)
        model = plain(mech.model)
        closures = set(mech.constraint_names)
        self.kinds, columns, unit = [], [], []
        for name in self.names:
            if name in closures and name not in model.names:
                motion = hc.joint_motion(mech, name, q)
                self.kinds.append(("cut", name, motion.rate.size))
                columns += [-1] * motion.rate.size
                rotary = _rotary(mech, name)
                size = size_of_loop(mech, name)
                unit += [1.0 if r else size for r in rotary]
                continue
            j = [*model.names].index(name) if name in model.names else None
            if j is None:  # part of a composite joint
                column = mech.coordinate_names.index(name)
                base = [*model.names].index(name[: name.index("[")])
                place = model.joints[base].idx_q + column - model.joints[base].idx_v
                self.kinds.append(("flat", place, 1))
                columns.append(column)
            else:
                joint = model.joints[j]
                columns += range(joint.idx_v, joint.idx_v + joint.nv)
                kind = "turn" if (joint.nq, joint.nv) == (2, 1) else "flat"
                kind = kind if joint.nq == joint.nv or kind == "turn" else "whole"
                self.kinds.append((kind, joint.idx_q, joint.nq))
        self.columns = np.array(columns)
        units = iter(unit)
        self.unit = np.array(
            [mech.column_scale[c] if c >= 0 else next(units) for c in columns], float
        )
        self.m = self.columns.size
        G = self.rows(q, t)[1]
        s = np.linalg.svd(G, compute_uv=False)
        self.rank = int((s > 1e-7 * s[0]).sum()) if s.size else 0
        Z = self._basis(G)
        T = self.jacobian(q) @ Z
        s = np.linalg.svd(T, compute_uv=False)
        self.b = int((s > 1e-7 * max(s[0], 1e-300)).sum())
        self.idle = Z.shape[1] - self.b

    # ------------------------------------------------------------------------------ what is seen

    def at(self, q):
        """The numbers of the sensors."""
        found = []
        for kind, where, n in self.kinds:
            if kind == "cut":
                found += hc.joint_motion(self.mech, where, q).value.tolist()
            elif kind == "turn":
                found.append(np.arctan2(q[where + 1], q[where]))
            else:
                found += q[where : where + n].tolist()
        return np.array(found)

    def moved(self, x, dm):
        """Numbers that are dm (m,) further than x."""
        found, at, done = x.copy(), 0, 0
        for kind, _where, n in self.kinds:
            if kind == "whole":
                nv = 6 if n == 7 else 3
                step = dm[done : done + nv]
                if n == 7:
                    M = pin.XYZQUATToSE3(x[at : at + 7]) * pin.exp6(step)
                    found[at : at + 7] = pin.SE3ToXYZQUAT(M)
                else:
                    R = pin.Quaternion(*_wxyz(x[at : at + 4])).matrix() @ pin.exp3(step)
                    found[at : at + 4] = pin.Quaternion(R).coeffs()
                at, done = at + n, done + nv
            else:
                k = 1 if kind == "turn" else n
                found[at : at + k] += dm[done : done + k]
                at, done = at + k, done + k
        return found

    def off(self, q, x):
        """How far the numbers x are from those at q, the shorter way round (m,)."""
        here, found, at = self.at(q), [], 0
        for kind, where, n in self.kinds:
            if kind == "whole" and n == 7:
                A, B = pin.XYZQUATToSE3(here[at : at + 7]), pin.XYZQUATToSE3(x[at : at + 7])
                found += pin.log6(A.actInv(B)).vector.tolist()
            elif kind == "whole":
                A, B = (pin.Quaternion(*_wxyz(y[at : at + 4])).matrix() for y in (here, x))
                found += pin.log3(A.T @ B).tolist()
            else:
                k = 1 if kind == "turn" else n
                d = x[at : at + k] - here[at : at + k]
                rotary = [True] if kind == "turn" else [False] * k
                if kind == "cut":
                    rotary = _rotary(self.mech, where)
                found += [float(np.angle(np.exp(1j * y))) if r else y
                          for y, r in zip(d, rotary, strict=True)]  # fmt: skip
            at += n if kind == "whole" else k
        return np.array(found)

    def jacobian(self, q):
        """Scaled rates of the sensors by scaled velocities."""
        S, i = np.zeros((self.m, self.mech.nv)), 0
        for kind, where, n in self.kinds:
            if kind == "cut":
                S[i : i + n] = hc.joint_motion(self.mech, where, q).jacobian
                i += n
                continue
            k = {"turn": 1, "flat": n, "whole": 6 if n == 7 else 3}[kind]
            S[np.arange(i, i + k), self.columns[i : i + k]] = 1.0
            i += k
        return S * self.mech.column_scale / self.unit[:, None]

    def rows(self, q, t=0.0):
        """All rows, scaled: errors and Jacobian."""
        mech = self.mech
        _, rows = constraint_rows(mech, q, np.zeros(mech.nv), t)
        r = mech.row_scale
        return r * rows.error, r[:, None] * rows.jacobian * mech.column_scale

    def basis(self, q, t=0.0):
        """An orthonormal basis of the admissible velocities, scaled."""
        return self._basis(self.rows(q, t)[1])

    def _basis(self, G):
        return np.linalg.svd(G)[2][self.rank :].T if G.size else np.eye(self.mech.nv)

    # ------------------------------------------------------------------------------- ways

    def _step(self, q, x, t, weights):
        """(correction of the rows and sensors, size of what is left, gamma), scaled."""
        error, G = self.rows(q, t)
        U, s, Vt = np.linalg.svd(G)
        r = self.rank
        d = -Vt[:r].T @ ((U.T @ error)[:r] / s[:r])
        Z = Vt[r:].T
        S = self.jacobian(q)
        T = weights[:, None] * (S @ Z)
        A, s_T, Bt = np.linalg.svd(T, full_matrices=False)
        b = self.b
        gamma = Z @ (Bt[:b].T / s_T[:b]) @ A[:, :b].T * weights
        off = self.off(q, x) / self.unit
        residual = off - S @ d
        d_all = d + gamma @ residual
        left = max(np.abs(error).max(initial=0.0), np.abs(T.T @ (weights * off)).max(initial=0.0))
        return d_all, left, gamma, s[r - 1] if r else 1.0

    def way(self, q, x, t0=0.0, t1=0.0, steps=200, weights=None):
        """Walk from q, closed, to where the sensors read x; in half steps where doubtful."""
        found = self._walked(q, x, t0, t1, steps, weights)
        if found.sure and found.gain <= DOUBTFUL and not found.crossed:
            return found
        if found.why in ("gain", "no end"):
            return found
        return self._walked(q, x, t0, t1, 2 * steps, weights)

    def _walked(self, q, x, t0, t1, steps, weights):
        mech, w = self.mech, np.ones(self.m) if weights is None else np.sqrt(weights)
        c, dm = mech.column_scale, self.off(q, x)
        size = np.linalg.norm(dm / self.unit)
        d, _, gamma, smallest = self._step(q, self.at(q), t0, w)
        first, crossed = smallest, False
        unmeasured = np.setdiff1d(np.arange(mech.nv), self.columns)
        top, along, x0, predicted = 0.0, 0.0, self.at(q), None
        for i in range(1, steps + 1):
            there = self.moved(x0, dm * (i / steps)) if i < steps else x
            t = t0 + (t1 - t0) * i / steps
            step = gamma @ (dm / steps / self.unit)
            if t1 != t0:
                step = self._step(q, there, t, w)[0]
            top = max(top, float(np.sqrt((gamma**2).sum(axis=1).max())))
            if not np.isfinite(step).all() or top > HOPELESS:
                return Way(q, False, top, along, "gain")
            if size:
                along = max(along, float(np.linalg.norm(step[unmeasured]) / size * steps))
            limit, before = max(np.abs(step).max(initial=0.0), 1e-4), smallest
            new = pin.integrate(mech.model, q, step * c)
            total = 0.0
            for _ in range(QUICKLY):
                d, left, gamma, smallest = self._step(new, there, t, w)
                if left <= CLOSED_TO:
                    break
                total = max(total, float(np.abs(d).max()))
                if not total <= 0.5 * limit + 10 * limit**2:
                    return Way(q, False, top, along, "jump")
                new = pin.integrate(mech.model, new, d * c)
            else:
                return Way(q, False, top, along, "slow")
            crossed = crossed or bool(crossing(before, smallest))
            if smallest < 1e-4 * first:
                return Way(q, False, top, along, "rows")
            if (
                predicted is not None
                and float(step @ predicted) < 0.0
                and np.abs(step).max() > 1e-3
            ):
                return Way(q, False, top, along, "turned")
            q, predicted = pin.normalize(mech.model, new), step
        return self._polished(q, x, t1, w, top, along, crossed)

    def _polished(self, q, x, t, w, top, along, crossed):
        for _ in range(4):
            d, _, gamma, _ = self._step(q, x, t, w)
            q = pin.integrate(self.mech.model, q, d * self.mech.column_scale)
        top = max(top, float(np.sqrt((gamma**2).sum(axis=1).max())))
        if not top <= HOPELESS:
            return Way(q, False, top, along, "gain")
        if np.abs(d).max() > 1e-9:
            return Way(q, False, top, along, "no end")
        return Way(pin.normalize(self.mech.model, q), True, top, along, crossed=crossed)

    def apart(self, q1, q2, x, t=0.0):
        """How far two closed configurations are apart, scaled, idle motions aside."""
        mech, c = self.mech, self.mech.column_scale
        d = pin.difference(mech.model, q1, q2) / c
        w = np.ones(self.m)
        for _ in range(20 if self.idle else 0):
            _, G = self.rows(q1, t)
            K = np.vstack([G, self.jacobian(q1)])
            N = np.linalg.svd(K)[2][mech.nv - self.idle :]
            spin = N.T @ (N @ d)
            if np.abs(spin).max() < 1e-9 or np.abs(d - spin).max() < 1e-8:
                return float(np.abs(d - spin).max())
            q1 = pin.integrate(mech.model, q1, spin * min(1.0, 0.3 / np.abs(spin).max()) * c)
            for _ in range(3):
                q1 = pin.integrate(mech.model, q1, self._step(q1, x, t, w)[0] * c)
            d = pin.difference(mech.model, q1, q2) / c
        return float(np.abs(d).max())


def _wxyz(x):
    return x[3], x[0], x[1], x[2]


def _rotary(mech, name):
    joint = mech.constraints[mech.constraint_names.index(name)].joint
    return {
        "revolute": [True], "screw": [True], "prismatic": [False], "cylindrical": [False, True],
        "planar": [False, False, True], "universal": [True, True],
    }[joint]  # fmt: skip


def size_of_loop(mech, name):
    """The size of the loop that a closure closes, m."""
    at = mech.constraint_names.index(name)
    start = sum(len(b.labels) for b in mech.bound[:at])
    scale = mech.row_scale[start : start + len(mech.bound[at].labels)]
    lengths = scale[scale != 1.0]
    return float(1.0 / lengths[0]) if lengths.size else 1.0
