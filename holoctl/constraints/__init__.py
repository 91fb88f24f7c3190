"""Constraints: closures of loops, couplings of joints. One file each, one contract for all."""

from holoctl.constraints.closure import Closure
from holoctl.constraints.contract import BoundRows, Constraint, Rows
from holoctl.constraints.coupling import Coupling

__all__ = ["BoundRows", "Closure", "Constraint", "Coupling", "Rows"]
