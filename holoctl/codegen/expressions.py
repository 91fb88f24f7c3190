"""A mechanism as expressions: symbols, tree, rows, and configurations to choose pivots at."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Indices, read_only
from holoctl.base.errors import AssemblyError
from holoctl.closing.assembly import assemble
from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.forces import SymbolicForces, check_forces, symbolic_forces
from holoctl.codegen.parameters import LawParameters, friction_parameters, with_parameters
from holoctl.codegen.precision import DOUBLE, Precision
from holoctl.codegen.rows import SymbolicRows, check_expressions, check_rows, symbolic_rows
from holoctl.codegen.tree import TreeSteps, symbolic_tree
from holoctl.codegen.tree_dynamics import tree_efforts
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, check_partition, partition
from holoctl.rows.tick.nonzero_rows import rows_that_open
from holoctl.tree.frames import Frame

__all__ = ["Expressions", "symbolic"]

PIVOT_SAMPLES = 8
"""The number of closed configurations near the reference at which pivots are chosen, besides it."""


@dataclass(frozen=True, eq=False)
class Expressions:
    """What the laws of one mechanism are made from; see `symbolic`.

    Attributes
    ----------
    mech : Mechanism
    partition : Partition
        Which rows count, decided once.
    q, v, t : (nq, 1), (nv, 1), (1, 1) symbols
    tree : TreeSteps
    rows : SymbolicRows
        The kept rows; along other axes of the same span where that is cheaper.
    every : SymbolicRows
        All rows that can be off at all, redundant ones too, as they are defined.
    open : int array
        Which rows these are.
    samples : (s, nq) array
        The closed configurations at which pivots are chosen.
    guard : tuple of expressions
        Of the state: each is below one where the state can be trusted.
    forces : SymbolicForces
        Friction, springs and other forces of the mechanism; their guard is in that of the state.
    precision : Precision
        That of the code that is made of them.
    parameters : LawParameters
        Of the tree, which may change after code was made.
    """

    mech: Mechanism
    partition: Partition
    q: SX
    v: SX
    t: SX
    tree: TreeSteps
    rows: SymbolicRows
    every: SymbolicRows
    open: Indices
    samples: Array
    guard: tuple[SX, ...]
    forces: SymbolicForces
    precision: Precision = DOUBLE
    parameters: LawParameters = field(default_factory=LawParameters)

    @property
    def context(self) -> dict[str, SX]:
        """Time and parameters: the last inputs of a law, by their names."""
        return {"t": self.t, **self.parameters.symbols}

    @property
    def unit_guard(self) -> list[SX]:
        """The part of the guard that quaternions and cosine-sine pairs have, of norm one."""
        return _unit_guard(self.tree, self.precision)

    def needed(self, a: SX, rates: SX | None = None) -> SX:
        """``M a + h - F`` (nv, 1): what motors and constraints have to give.

        With `rates`, a velocity, friction is that of it.
        """
        return self.forces.minus(tree_efforts(self.tree, self.v, a), self.v, rates)


def symbolic(
    mech: Mechanism,
    partition_: Partition | None = None,
    precision: Precision = DOUBLE,
    payload: Frame | None = None,
    gravity: bool = False,
    friction: bool = False,
    together: bool = False,
) -> Expressions:
    """Symbols, tree and rows of a mechanism, for the laws.

    Parameters
    ----------
    mech : Mechanism
    partition_ : Partition, optional
        Default: decided at the configuration assembled from ``mech.reference``.
    precision : Precision, optional
    payload : Frame, optional
        Where a payload is mounted whose numbers are symbols.
    gravity : bool, optional
        Whether gravity is symbols.
    friction : bool, optional
        Whether the coefficients of joint friction are symbols, of which there is one.
    together : bool, optional
        Whether these symbols are one input of laws, ``load``.

    Returns
    -------
    Expressions

    Raises
    ------
    InputError
        Without CasADi; for a joint, a constraint or a force that has no expressions, or wrong
        ones, by name; for a partition of another mechanism.
    AssemblyError
        If the reference configuration cannot be assembled.
    """
    ca = casadi_module()
    check_mechanism(mech)
    check_rows(mech)
    check_forces(mech)
    samples = mech.per_thread("samples of expressions", lambda: _samples(mech))
    part = partition(mech, samples[0]) if partition_ is None else partition_
    check_partition(mech, part)
    q, v, t = ca.SX.sym("q", mech.nq), ca.SX.sym("v", mech.nv), ca.SX.sym("t")
    tree = symbolic_tree(mech.model, q)
    check_expressions(mech, tree, t, samples)
    rows = symbolic_rows(mech, tree, v, t, part.rows, same_space=True)
    can_open = np.flatnonzero(rows_that_open(mech))
    every = symbolic_rows(mech, tree, v, t, can_open)
    rubbing = friction_parameters(mech) if friction else LawParameters()
    forces = symbolic_forces(mech, tree, v, t, samples, tuple(rubbing.symbols.values()))
    tree, parameters = with_parameters(tree, payload, gravity, rubbing, together)
    guard = (*rows.guard, *_unit_guard(tree, precision), *forces.guard)
    return Expressions(
        mech, part, q, v, t, tree, rows, every, can_open, samples, guard, forces, precision,
        parameters,
    )  # fmt: skip


def _unit_guard(tree: TreeSteps, precision: Precision) -> list[SX]:
    q = tree.q
    norms = [sum(q[i] * q[i] for i in unit) - 1.0 for unit in tree.unit_parts]
    return [(precision.unit_norm * x) ** 2 for x in norms]


def _samples(mech: Mechanism) -> Array:
    """The configuration assembled from the reference, and others near it, from near to far."""
    middle, _ = assemble(mech)
    rng, found = np.random.default_rng(0), [middle]
    for i in range(PIVOT_SAMPLES):
        step = (0.1, 0.2, 0.3, 0.4)[i % 4] * rng.normal(size=mech.nv) * mech.column_scale
        try:
            found.append(
                assemble(mech, pin.integrate(mech.model, middle, step), restarts=0, max_iter=50)[0]
            )
        except AssemblyError:
            continue
    return read_only(np.array(found))
