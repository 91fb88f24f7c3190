"""Constraints: closures, rods, contacts, couplings, your own. One file each, one contract."""

from holoctl.constraints.closure import Closure
from holoctl.constraints.contact import Contact
from holoctl.constraints.contract import BoundRows, Constraint, Rows
from holoctl.constraints.coupling import Coupling
from holoctl.constraints.custom import Custom
from holoctl.constraints.gamma_q import GammaQ
from holoctl.constraints.rod import Rod

__all__ = [
    "BoundRows",
    "Closure",
    "Constraint",
    "Contact",
    "Coupling",
    "Custom",
    "GammaQ",
    "Rod",
    "Rows",
]
