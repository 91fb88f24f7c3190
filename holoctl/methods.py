"""Functions beside the usual way: to compare with, and to read results by constraint.

The usual way is `inverse_dynamics`, `forward_dynamics` and their prepared forms.
"""

from __future__ import annotations

from holoctl.dynamics.other_methods.fdgq import fdgq
from holoctl.dynamics.relaxed_inverse import inverse_dynamics_relaxed, is_fully_actuated
from holoctl.rows.evaluate import by_constraint

__all__ = ["by_constraint", "fdgq", "inverse_dynamics_relaxed", "is_fully_actuated"]
