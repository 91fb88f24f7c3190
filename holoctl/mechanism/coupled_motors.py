"""Motors that add no motion, because couplings tie their joints to those of other motors.

    C q = const     all couplings        N: null space of C        rank (N' B) < nu

For example a file may give motors both to a joint and to one that mimics it.
"""

from __future__ import annotations

import numpy as np

from holoctl.constraints.coupling import Coupling
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["coupled_motors"]

_TIED = 1e-9  # remainder of a motor column of length one that counts as rounding


def coupled_motors(mech: Mechanism) -> tuple[str, ...]:
    """Names of motors whose joints are tied by couplings to those of others, or held at rest.

    Of motors that are tied to each other one is the driving one, which is not named: not a motor on
    the coordinate that a coupling names first, because that joint mimics the others; else the
    first.
    """
    couplings = [c.coefficients for c in mech.constraints if isinstance(c, Coupling)]
    if not couplings or not mech.nu:
        return ()
    index = {name: i for i, name in enumerate(mech.coordinate_names)}
    C = np.zeros((len(couplings), mech.nv))
    for row, coefficients in zip(C, couplings, strict=True):
        for name, factor in coefficients.items():
            row[index[name]] = factor * mech.column_scale[index[name]]
    _, s, vt = np.linalg.svd(C / np.linalg.norm(C, axis=1, keepdims=True))
    B = mech.column_scale[:, None] * mech.B
    moved = (B / np.linalg.norm(B, axis=0)).T @ vt[int(np.count_nonzero(s > _TIED)) :].T
    mimics = {index[next(iter(coefficients))] for coefficients in couplings}
    late = [int(np.argmax(np.abs(column))) in mimics for column in B.T]
    basis, tied = np.zeros((0, moved.shape[1])), list[int]()
    for i in sorted(range(mech.nu), key=late.__getitem__):
        rest = moved[i] - basis.T @ (basis @ moved[i])
        rest -= basis.T @ (basis @ rest)
        size = float(np.linalg.norm(rest))
        if size > _TIED:
            basis = np.vstack([basis, rest / size])
        else:
            tied.append(i)
    return tuple(mech.actuator_names[i] for i in sorted(tied))
