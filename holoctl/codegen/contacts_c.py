"""C of contacts that only push: their numbers, and the law around the terms of a state.

The template is `templates/contacts.c.in`, around the active set of `templates/nearest.c.in`. NU
must be defined before it. Its oracle is control/contact_law.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holoctl.codegen.c_text import arrays, number
from holoctl.codegen.limits_c import motor_limits_c
from holoctl.control.contact_law import CONTACTS_AGREE, moment_unit
from holoctl.control.contact_motion import SAME_RANK
from holoctl.control.contact_program import (
    CONSTANT_ROW,
    CONTACT_REGULAR,
    NO_COST,
    OPTIMAL,
    RAY_CLEAR,
    REGULAR_OF_SLIP,
    SLIP,
    STRENGTHENED,
    UNMOVED,
)
from holoctl.control.contact_rows import BoundContact
from holoctl.dynamics.actuation import effort_scales
from holoctl.mechanism.bound_limits import BoundLimits
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["ContactSizes", "contact_values"]

STEPS = 4
"""In machine code, the active set changes at most so many times for each condition."""

RESUMED = 1e-12
"""An active bound of the last tick is kept where others leave more than this of its square."""

WEIGHTLESS = 1e-12
"""A motion has no inertia where others leave less than this of its own."""

SPARE = 2
"""So many more rows of contacts may depend on each other than at the states of the export."""


@dataclass(frozen=True)
class ContactSizes:
    """How many motions there are, rows of tasks, and rows of contacts that depend on others."""

    motions: int
    tasks: int
    free: int


def contact_values(
    mech: Mechanism, contacts: Sequence[BoundContact], bound: BoundLimits, sizes: ContactSizes,
    policy: str, prefix: str, of_motors: bool,
) -> dict[str, object]:  # fmt: skip
    """The values of the templates contacts.c and contacts_memory.h: of the law of these contacts,
    within the limits of efforts in `bound`; the tasks may be those of motors alone."""
    nu, moment = mech.nu, moment_unit(mech)
    row_of = np.cumsum([0, *(one.scale.size for one in contacts)], dtype=int)
    cone_of = np.cumsum([0, *(one.bound.size for one in contacts)], dtype=int)
    rows, cones = int(row_of[-1]), int(cone_of[-1])
    free = max(min(sizes.free + SPARE, rows), 1)  # no array of C is empty
    given, slipping = nu + (0 if of_motors else sizes.tasks) + 1, policy == "nearest"
    unknowns = nu + (max(rows, free) if slipping else free)
    below = unknowns + sizes.tasks + rows  # rows of the stack of the cost
    stack = max(nu + cones, below) * unknowns
    numbers = arrays(
        row_of=row_of, cone_of=cone_of,
        number_of=np.cumsum([0, *(one.cone.size for one in contacts)], dtype=int),
        cone=np.concatenate([np.zeros(0), *(one.cone.T.ravel() for one in contacts)]),
        cone_bound=np.concatenate([np.zeros(0), *(one.bound for one in contacts)]),
        row_scale=np.concatenate([np.zeros(0), *(one.scale for one in contacts)]),
        effort_unit=moment * effort_scales(mech)[0],
        task_scale=effort_scales(mech)[0] if of_motors else None,
    )  # fmt: skip
    return {
        "P": prefix, "nu": nu, "slipping": slipping, "of_motors": of_motors,
        "softened": False, "warm": True,
        "contacts": len(contacts), "tasks": sizes.tasks, "motions": sizes.motions, "free": free,
        "with_free": nu + free, "rows_or_one": max(rows, 1), "cones_or_one": max(cones, 1),
        "unknowns": unknowns, "square": unknowns**2, "bounds": nu + cones,
        "room": max(unknowns, sizes.tasks if slipping else 0) * unknowns, "given": given,
        "beside": nu + 1, "kept_bounds": unknowns + 1, "z_width": given + rows, "steps": STEPS,
        "numbers": numbers, "motor_limits": motor_limits_c(bound), "moment": number(moment),
        "same_rank": number(SAME_RANK), "regular": number(CONTACT_REGULAR),
        "regular_of_slip": number(REGULAR_OF_SLIP), "no_cost": number(NO_COST),
        "conditions_room": stack, "strengthened": number(STRENGTHENED),
        "slip_weight": number(SLIP), "optimal": number(OPTIMAL), "agree": number(CONTACTS_AGREE),
        "constant": number(CONSTANT_ROW), "clear": number(RAY_CLEAR), "unmoved": number(UNMOVED),
        "resumed": number(RESUMED), "weightless": number(WEIGHTLESS),
    }  # fmt: skip
