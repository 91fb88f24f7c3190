"""Constraints: closures, rods, contacts, couplings. One file each, one contract for all."""

from holoctl.constraints.closure import Closure
from holoctl.constraints.contact import Contact
from holoctl.constraints.contract import BoundRows, Constraint, Rows
from holoctl.constraints.coupling import Coupling
from holoctl.constraints.rod import Rod

__all__ = ["BoundRows", "Closure", "Constraint", "Contact", "Coupling", "Rod", "Rows"]
