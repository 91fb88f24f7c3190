"""The oracle of `branches` for many jumps at once: its own kinematics and rows, in stacked arrays.

    m(l) = s(q0) + l dm        l = 1/n, 2/n, ..., 1

Bodies are placed by products of homogeneous parts read off the model, closures are points that
meet and axes that stay at right angles, and every step is the least-squares solution of all rows,
so neither which rows are kept nor how they are scaled matters. Idle motions stay where they are:
the smallest step is taken. Nothing of holoctl is asked but names, sizes and frames.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from branches import DOUBTFUL, HOPELESS, crossing, size_of_loop

import holoctl as hc
from holoctl.tree.frames import resolve_frame
from holoctl.tree.frozen_model import plain

HELD, HEAVY, REACHED, CORRECTIONS = 1e-9, 1e3, 1e-9, 6
ONE_WAY = ("revolute", "cylindrical")
RIGHT_ANGLES = {
    "spherical": (), "revolute": ("xz", "yz"), "cylindrical": ("xz", "yz"),
    "universal": ("xy",), "weld": ("yz", "zx", "xy"), "prismatic": ("yz", "zx", "xy"),
}  # fmt: skip
"""Axes of a and b that stay at right angles; half a turn away they do too, which is far."""
ALONG = {"cylindrical": "xy", "prismatic": "xy"}


@dataclass(frozen=True)
class Ways:
    """Where many ways led: as `branches.Way`, stacked; `crossed` only where it was asked for."""

    q: np.ndarray
    sure: np.ndarray
    gain: np.ndarray
    along: np.ndarray
    why: np.ndarray
    crossed: np.ndarray


def understood(mech, measured):
    """Whether these rows and sensors can be stacked."""
    kinds = {"RX", "RY", "RZ", "RevoluteUnaligned", "PX", "PY", "PZ", "PrismaticUnaligned",
             "RUBX", "RUBY", "RUBZ", "Spherical", "FreeFlyer"}  # fmt: skip
    joints = {j.shortname().removeprefix("JointModel") for j in list(mech.model.joints)[1:]}
    if not joints <= kinds:
        return False
    for c in mech.constraints:
        closes = isinstance(c, hc.Closure) and (
            c.joint in RIGHT_ANGLES or (c.axes and set(c.axes.split()) <= set("xyz"))
        )
        if not (closes or isinstance(c, hc.Coupling)):
            return False
    return all(
        n in mech.model.names
        or mech.constraints[mech.constraint_names.index(n)].joint == "revolute"
        for n in measured
    )


class ManyBranches:
    """Stacked ways on one mechanism with these sensors."""

    def __init__(self, mech, measured, oracle):
        assert understood(mech, measured), mech.name
        self.mech, self.oracle = mech, oracle
        model = plain(mech.model)
        self.model, self.nv = model, mech.nv
        self.joints = []
        for j in range(1, model.njoints):
            joint, place = model.joints[j], model.jointPlacements[j]
            name = joint.shortname().removeprefix("JointModel")
            data = joint.createData()
            axis = None
            if joint.nv == 1:
                joint.calc(
                    data, pin.neutral(model)[: joint.nq] * 0 + ([1, 0] if joint.nq == 2 else 0)
                )
                S = np.array(data.S).reshape(6)
                axis = S[:3] if name[0] == "P" else S[3:]
            self.joints.append(
                (name, model.parents[j], place.rotation.copy(), place.translation.copy(), axis,
                 joint.idx_q, joint.idx_v)
            )  # fmt: skip
        self.support = np.zeros((model.njoints, self.nv), bool)
        for j in range(1, model.njoints):
            joint = model.joints[j]
            self.support[j] = self.support[model.parents[j]]
            self.support[j, joint.idx_v : joint.idx_v + joint.nv] = True
        self.closures, self.couplings = [], []
        for name, c in zip(mech.constraint_names, mech.constraints, strict=True):
            if isinstance(c, hc.Coupling):
                row = np.zeros(self.nv)
                for n, x in c.coefficients.items():
                    row[mech.coordinate_names.index(n)] = x
                scale = 1.0 / np.abs(row * mech.column_scale).max()
                self.couplings.append((row * scale, c.offset * scale))
                continue
            a, b = resolve_frame(model, c.a, name), resolve_frame(model, c.b, name)
            linear = c.axes.replace(" ", "") if c.axes else ALONG.get(c.joint, "xyz")
            angles = () if c.axes else RIGHT_ANGLES[c.joint]
            self.closures.append((a, b, linear, angles, size_of_loop(mech, name), name))

    # -------------------------------------------------------------------------- kinematics

    def _placed(self, q):
        """Rotations and origins of all joints, and columns of the world Jacobian (about the world
        origin)."""
        B = len(q)
        R, p = [np.broadcast_to(np.eye(3), (B, 3, 3))], [np.zeros((B, 3))]
        J = np.zeros((B, 6, self.nv))
        for name, parent, R0, p0, axis, iq, iv in self.joints:
            A = R[parent] @ R0
            o = p[parent] + R[parent] @ p0
            if name == "FreeFlyer":
                o = o + (A @ q[:, iq : iq + 3, None])[..., 0]
                A = A @ _rotation(q[:, iq + 3 : iq + 7])
                J[:, :3, iv : iv + 3] = A
                J[:, 3:, iv + 3 : iv + 6] = A
                J[:, :3, iv + 3 : iv + 6] = np.cross(o[:, None, :], A.transpose(0, 2, 1)).transpose(
                    0, 2, 1
                )
            elif name == "Spherical":
                A = A @ _rotation(q[:, iq : iq + 4])
                J[:, 3:, iv : iv + 3] = A
                J[:, :3, iv : iv + 3] = np.cross(o[:, None, :], A.transpose(0, 2, 1)).transpose(
                    0, 2, 1
                )
            elif name[0] == "P":
                a = A @ axis
                o = o + a * q[:, iq, None]
                J[:, :3, iv] = a
            else:
                a = A @ axis
                J[:, 3:, iv], J[:, :3, iv] = a, np.cross(o, a)
                c, s = (q[:, iq], q[:, iq + 1]) if name.startswith("RUB") else (
                    np.cos(q[:, iq]), np.sin(q[:, iq]))  # fmt: skip
                A = A @ _about(axis, c, s)
            R.append(A)
            p.append(o)
        return R, p, J

    def _rows(self, q):
        """(errors, Jacobian) of all rows, and the angles of cut joints that are measured."""
        c = self.mech.column_scale
        R, p, J = self._placed(q)
        errors, G, cut = [], [], {}
        for a, b, linear, angles, size, name in self.closures:
            Ra, Rb = R[a.joint] @ a.placement.rotation, R[b.joint] @ b.placement.rotation
            pa = p[a.joint] + R[a.joint] @ a.placement.translation
            pb = p[b.joint] + R[b.joint] @ b.placement.translation
            Ja, Jb = J * self.support[a.joint], J * self.support[b.joint]
            D, w = Jb[:, :3] - Ja[:, :3], Jb[:, 3:] - Ja[:, 3:]
            # velocity of the point of b that is at pb, against a: D + w x pb
            meet = D - np.cross(pb[:, :, None], w, axis=1)
            off = pb - pa
            for axis in linear:
                n = Ra[:, :, "xyz".index(axis)]
                errors.append(np.einsum("bi,bi->b", n, off) / size)
                G.append(np.einsum("bi,biv->bv", n, meet) / size)
            for one, other in angles:
                n, m = Ra[:, :, "xyz".index(one)], Rb[:, :, "xyz".index(other)]
                errors.append(np.einsum("bi,bi->b", n, m))
                G.append(np.einsum("bi,biv->bv", np.cross(m, n), w))
            x, y = (np.einsum("bi,bi->b", Ra[:, :, i], Rb[:, :, 0]) for i in (0, 1))
            cut[name] = np.arctan2(y, x), np.einsum("bi,biv->bv", Ra[:, :, 2], w)
        for row, offset in self.couplings:
            errors.append(self._coordinates(q) @ row - offset)
            G.append(np.broadcast_to(row, (len(q), self.nv)))
        if not errors:
            return np.zeros((len(q), 0)), np.zeros((len(q), 0, self.nv)), cut
        return np.stack(errors, 1), np.stack(G, 1) * c, cut

    def _coordinates(self, q):
        found = np.zeros((len(q), self.nv))
        for name, _, _, _, _, iq, iv in self.joints:
            if name not in ("FreeFlyer", "Spherical") and not name.startswith("RUB"):
                found[:, iv] = q[:, iq]
        return found

    def _seen(self, q, x, cut):
        """(x less what is read, scaled; Jacobian)."""
        off, S, o = [], [], self.oracle
        at = done = 0
        for kind, where, n in o.kinds:
            if kind == "cut":
                d = x[:, at] - cut[where][0]
                off.append((d + np.pi) % (2 * np.pi) - np.pi)
                S.append(cut[where][1] * self.mech.column_scale)
                at, done = at + 1, done + 1
                continue
            k = {"turn": 1, "flat": n, "whole": 6 if n == 7 else 3}[kind]
            for i in range(k):
                row = np.zeros((len(q), self.nv))
                row[:, o.columns[done + i]] = 1.0
                S.append(row * self.mech.column_scale / o.unit[done + i])
            if kind == "turn":
                d = x[:, at] - np.arctan2(q[:, where + 1], q[:, where])
                off.append((d + np.pi) % (2 * np.pi) - np.pi)
            elif kind == "flat":
                off += [(x[:, at + i] - q[:, where + i]) / o.unit[done + i] for i in range(n)]
            else:
                here, there = q[:, where : where + n], x[:, at : at + n]
                A, B = _rotation(here[:, -4:]), _rotation(there[:, -4:])
                E = A.transpose(0, 2, 1) @ B
                turn = 0.5 * np.stack(
                    [E[:, 2, 1] - E[:, 1, 2], E[:, 0, 2] - E[:, 2, 0], E[:, 1, 0] - E[:, 0, 1]], 1
                )
                if n == 7:
                    d = np.einsum("bji,bj->bi", A, there[:, :3] - here[:, :3])
                    turn = np.concatenate([d, turn], 1)
                off += [turn[:, i] / o.unit[done + i] for i in range(k)]
            at, done = at + (1 if kind == "turn" else n), done + k
        return np.stack(off, 1), np.stack(S, 1)

    def _moved(self, x, dm):
        found, o = x.copy(), self.oracle
        at = done = 0
        for kind, _, n in o.kinds:
            if kind == "whole":
                k = 6 if n == 7 else 3
                step = dm[:, done : done + k]
                found[:, at + n - 4 : at + n] = _times(
                    x[:, at + n - 4 : at + n], _exp(step[:, -3:])
                )
                if n == 7:
                    R = _rotation(x[:, at + 3 : at + 7])
                    found[:, at : at + 3] += np.einsum("bij,bj->bi", R, _slid(step))
                at, done = at + n, done + k
            else:
                k = 1 if kind in ("turn", "cut") else n
                found[:, at : at + k] += dm[:, done : done + k]
                at, done = at + k, done + k
        return found

    def _integrated(self, q, d):
        found = q.copy()
        for name, _, _, _, _, iq, iv in self.joints:
            if name == "FreeFlyer":
                step = d[:, iv : iv + 6]
                R = _rotation(q[:, iq + 3 : iq + 7])
                found[:, iq : iq + 3] += np.einsum("bij,bj->bi", R, _slid(step))
                found[:, iq + 3 : iq + 7] = _unit(_times(q[:, iq + 3 : iq + 7], _exp(step[:, 3:])))
            elif name == "Spherical":
                found[:, iq : iq + 4] = _unit(_times(q[:, iq : iq + 4], _exp(d[:, iv : iv + 3])))
            elif name.startswith("RUB"):
                c, s = np.cos(d[:, iv]), np.sin(d[:, iv])
                x, y = q[:, iq], q[:, iq + 1]
                found[:, iq], found[:, iq + 1] = c * x - s * y, s * x + c * y
                found[:, iq : iq + 2] = _unit(found[:, iq : iq + 2])
            else:
                found[:, iq] += d[:, iv]
        return found

    # -------------------------------------------------------------------------------- ways

    def ways(self, q, x, dm, steps=200, weights=None, ranks=False):
        """Walk from each q (B, nq), closed, by dm (B, m) of the sensors to x (B, p); `ranks`: look
        at the rank of the rows on the way, which takes longer."""
        found = self._walked(q, x, dm, steps, weights, ranks)
        doubtful = (found.gain > DOUBTFUL) | found.crossed
        again = np.flatnonzero((~found.sure & (found.why != "gain")) | doubtful)
        if again.size and steps < 400:
            w = None if weights is None else weights[again]
            other = self._walked(q[again], x[again], dm[again], 2 * steps, w, ranks)
            for name in ("q", "sure", "gain", "along", "why", "crossed"):
                getattr(found, name)[again] = getattr(other, name)
        return found

    def _solved(self, q, x, weights):
        """(correction, gamma, largest error), scaled."""
        error, G, cut = self._rows(q)
        off, S = self._seen(q, x, cut)
        w = 1.0 if weights is None else np.sqrt(weights)
        heavy = HEAVY if S.shape[1] > self.oracle.b else 1.0
        K = np.concatenate([heavy * G, S * (w if weights is None else w[:, :, None])], 1)
        A = np.einsum("bki,bkj->bij", K, K)
        A[:, np.arange(self.nv), np.arange(self.nv)] += HELD
        left = np.concatenate([-heavy * error, off * w], 1)
        Sw = S * (1.0 if weights is None else weights[:, :, None])
        right = np.concatenate(
            [np.einsum("bki,bk->bi", K, left)[:, :, None], Sw.transpose(0, 2, 1)], 2
        )
        X = np.linalg.solve(A, right)
        return X[:, :, 0], X[:, :, 1:], np.abs(error).max(axis=1, initial=0.0)

    def _least(self, q, ranks):
        """The singular value of the rows that vanishes where they lose rank."""
        r = self.oracle.rank
        if not ranks or not r:
            return np.ones(len(q))
        return np.linalg.svd(self._rows(q)[1], compute_uv=False)[:, r - 1]

    def _walked(self, q, x, dm, steps, weights, ranks):
        with np.errstate(all="ignore"):
            return self._walked_on(q.copy(), x, dm, steps, weights, ranks)

    def _walked_on(self, q, x, dm, steps, weights, ranks):
        o, c = self.oracle, self.mech.column_scale
        B, unmeasured = len(q), np.setdiff1d(np.arange(self.nv), self.oracle.columns)
        sure, why = np.ones(B, bool), np.full(B, "", dtype=object)
        gain, along, crossed = np.zeros(B), np.zeros(B), np.zeros(B, bool)
        x0 = np.stack([o.at(y) for y in q])
        scaled = dm / o.unit
        size = np.maximum(np.linalg.norm(scaled, axis=1), 1e-300)
        alive = np.arange(B)

        def lose(which, reason):
            sure[alive[which]] = False
            why[alive[which]] = reason

        d, gamma, _ = self._solved(q, x0, weights)
        before, last, least = gamma, None, self._least(q, ranks)
        for i in range(1, steps + 1):
            w = None if weights is None else weights[alive]
            step_m = scaled[alive] / steps
            tangent = np.einsum("bij,bj->bi", gamma, step_m)
            step = tangent + 0.5 * np.einsum("bij,bj->bi", gamma - before, step_m)
            norms = np.sqrt((gamma * gamma).sum(axis=2)).max(axis=1)
            gain[alive] = np.maximum(gain[alive], norms)
            along[alive] = np.maximum(
                along[alive], np.linalg.norm(tangent[:, unmeasured], axis=1) / size[alive] * steps
            )
            there = self._moved(x0[alive], dm[alive] * (i / steps)) if i < steps else x[alive]
            big = np.maximum(np.abs(step).max(axis=1), 1e-4)
            new = self._integrated(q[alive], step * c)
            ok = np.isfinite(step).all(axis=1) & (norms <= HOPELESS)
            lose(~ok, "gain")
            total, done = np.zeros(len(alive)), np.zeros(len(alive), bool)
            next_gamma = gamma.copy()
            new[~ok] = q[alive][~ok]
            for _ in range(CORRECTIONS):
                go = np.flatnonzero(ok & ~done)
                if not go.size:
                    break
                d, g, _ = self._solved(new[go], there[go], None if w is None else w[go])
                length = np.abs(d).max(axis=1)
                length[~np.isfinite(length)] = np.inf
                total[go] = np.maximum(total[go], length)
                jumped = total[go] > 0.5 * big[go] + 10 * big[go] ** 2
                ok[go[jumped]] = False
                lose(go[jumped], "jump")
                fine = ~jumped
                new[go[fine]] = self._integrated(new[go[fine]], d[fine] * c)
                next_gamma[go] = g
                done[go] = length <= REACHED
            late = ok & ~done
            lose(late, "slow")
            ok &= done
            if last is not None:
                turned = ok & ((step * last).sum(axis=1) < 0.0) & (np.abs(step).max(axis=1) > 1e-3)
                lose(turned, "turned")
                ok &= ~turned
            q[alive] = new
            alive = alive[ok]
            least, least_before = self._least(q[alive], ranks), least[ok]
            crossed[alive] |= crossing(least_before, least)
            before, gamma, last = gamma[ok], next_gamma[ok], step[ok]
            if not alive.size:
                break
        if alive.size:
            w = None if weights is None else weights[alive]
            for _ in range(3):
                d, gamma, _ = self._solved(q[alive], x[alive], w)
                q[alive] = self._integrated(q[alive], d * c)
            gain[alive] = np.maximum(gain[alive], np.sqrt((gamma**2).sum(axis=2)).max(axis=1))
            lost = ~(np.abs(d).max(axis=1) <= 1e-8)
            lose(lost, "no end")
            worse = ~(gain[alive] <= HOPELESS)
            lose(worse, "gain")
        return Ways(q, sure, gain, along, why, crossed)


# ------------------------------------------------------------------------------- rotations, stacked


def _about(axis, c, s):
    K = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    aa = np.outer(axis, axis)
    return c[:, None, None] * (np.eye(3) - aa) + s[:, None, None] * K + aa


def _rotation(x):
    x = _unit(x)
    a, b, c, w = x.T
    return np.stack([
        1 - 2 * (b * b + c * c), 2 * (a * b - c * w), 2 * (a * c + b * w),
        2 * (a * b + c * w), 1 - 2 * (a * a + c * c), 2 * (b * c - a * w),
        2 * (a * c - b * w), 2 * (b * c + a * w), 1 - 2 * (a * a + b * b),
    ], 1).reshape(-1, 3, 3)  # fmt: skip


def _unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def _exp(w):
    angle = np.linalg.norm(w, axis=1, keepdims=True)
    return np.concatenate([0.5 * w * np.sinc(0.5 * angle / np.pi), np.cos(0.5 * angle)], 1)


def _times(x, y):
    v, w, a, b = x[:, :3], x[:, 3:], y[:, :3], y[:, 3:]
    return np.concatenate(
        [w * a + b * v + np.cross(v, a), w * b - (v * a).sum(axis=1, keepdims=True)], 1
    )


def _slid(step):
    """Where the origin goes in a screw motion of step (B, 6)."""
    v, w = step[:, :3], step[:, 3:]
    t = np.linalg.norm(w, axis=1, keepdims=True)
    small = t < 1e-4
    s = np.where(small, 1.0, t)
    A = np.where(small, 0.5 - t**2 / 24, (1 - np.cos(s)) / s**2)
    B = np.where(small, 1 / 6 - t**2 / 120, (s - np.sin(s)) / s**3)
    wv = np.cross(w, v)
    return v + A * wv + B * np.cross(w, wv)
