"""The operators that laws are written with: bordered constraints, and the tree, at one state.

The kept rows G and one row for each independent motion make a square matrix,

    K = [G; C']        K a = [-drift; c]        K' (y; x) = w

with C the actuation matrix B, or a selection of coordinates. c are the coordinates of a motion, x =
gamma' w the generalized forces of efforts w along these coordinates, and gamma = K^-1 [0; I]. A
backend (NumPy or CasADi) implements these operators for its own vectors and matrices, arrays or
expressions; both have ``+``, ``-`` and ``.T``, and `times` is their product. The backend also
collects the guards that put a result in doubt: a law does not mention them.
Derivation: docs/derivations.md, "Inverse dynamics in a tick".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

__all__ = ["Constraints", "TaskOperators", "Tree", "times"]


def times(A: Any, x: Any) -> Any:
    """``A x``: of arrays by `dot`, which takes a third of the time of ``@`` for small ones."""
    return A.dot(x) if type(A) is np.ndarray else A @ x


class Constraints(Protocol):
    """K, factored at a state."""

    @property
    def of_motors(self) -> Callable[[Any], Any]:
        """c of the motion with these accelerations of the motors (nu,), or of the nearest motion if
        there are more motors than motions. Zero for passive motions, which no motor drives."""
        ...

    @property
    def of_rates(self) -> Callable[[Any], Any]:
        """Likewise for a velocity."""
        ...

    @property
    def motion(self) -> Callable[[Any], Any]:
        """a (nv,) with ``G a = -drift`` and ``C' a = c``."""
        ...

    @property
    def velocity(self) -> Callable[[Any], Any]:
        """v (nv,) with ``G v = -phi_t`` and ``C' v = c``."""
        ...

    @property
    def along(self) -> Callable[[Any], Any]:
        """``x = gamma' w`` of efforts on the coordinates."""
        ...

    @property
    def share(self) -> Callable[[Any], Any]:
        """u (nu,) with ``gamma' B u = x``: of least norm if there are more motors than motions.
        Entries of x along passive motions are ignored."""
        ...

    @property
    def basis(self) -> Callable[[], Any]:
        """gamma (nv, k)."""
        ...

    @property
    def actuation(self) -> Callable[[], Any]:
        """``gamma' B`` (k, nu)."""
        ...

    @property
    def undriven(self) -> Callable[[], Any] | None:
        """The columns of gamma (nv, k - nu) that no motor drives; None if all are driven."""
        ...

    @property
    def rows(self) -> Callable[[Any], tuple[Any, Any, Any]]:
        """For rows J, in the storage of the backend: J_c = ``J gamma`` (m, k), and the ``J a`` and
        ``J v`` (m,) of ``c = 0``. It may overwrite J."""
        ...

    @property
    def keeps(self) -> Callable[[Any], None] | None:
        """Checks whether an acceleration satisfies the redundant rows too; None if there are none,
        or if they are not checked."""
        ...


class Tree(Protocol):
    """The open tree at a state."""

    @property
    def v(self) -> Any:
        """The velocity (nv,)."""
        ...

    @property
    def friction(self) -> bool:
        """Whether some force is friction, which may be compensated at another velocity than v."""
        ...

    @property
    def needed(self) -> Callable[[Any, Any], Any]:
        """``M a + h - F`` (nv,) of a, and of the velocity at which friction is evaluated; None:
        v."""
        ...

    @property
    def at_rest(self) -> Callable[[], Any]:
        """The same at rest."""
        ...

    @property
    def inertia_times(self) -> Callable[[Any], Any]:
        """``M X`` of a matrix."""
        ...

    @property
    def cholesky(self) -> Callable[[Any], Callable[[Any], Any]]:
        """The function b -> W^-1 b of a reduced inertia ``W = N' M N``."""
        ...

    @property
    def steps(self) -> int:
        """The number of corrections of a motion by W: two if its guard allows pivots so small that
        one correction is not accurate enough."""
        ...


class TaskOperators(Protocol):
    """One task, or several stacked, at a state, ``xd = J v`` and ``xdd = J a - right``; its
    gains."""

    @property
    def jacobian(self) -> Any:
        """J, as `Constraints.rows` takes it."""
        ...

    @property
    def right(self) -> Any:
        """``-Jd v`` (m,)."""
        ...

    @property
    def rate(self) -> Any:
        """``J v`` (m,)."""
        ...

    @property
    def error(self) -> Callable[[Any], Any]:
        """e (m,), from here to the value of a reference."""
        ...

    @property
    def stiffness(self) -> Callable[[Any], Any]:
        """``K e``: forces where `natural`, else accelerations."""
        ...

    @property
    def damping(self) -> Callable[[Any], Any] | None:
        """``D ed`` likewise; None for the critical damping of the natural inertia."""
        ...

    @property
    def critical(self) -> Callable[[Any, Any], Any]:
        """``D ed`` with damping ratio one, of the mobility A."""
        ...

    @property
    def natural(self) -> bool:
        """Whether stiffness and damping give forces, which accelerate the natural inertia."""
        ...

    @property
    def per_inertia(self) -> Callable[[Any], Any] | None:
        """``Ld^-1 f`` with the desired task-space inertia Ld; None without one."""
        ...

    @property
    def posture(self) -> Callable[[], Any]:
        """Accelerations of the motors (nu,) for motions that the task does not determine."""
        ...

    @property
    def factor(self) -> Callable[[Any], tuple[Callable[[Any], Any], Callable[[Any], Any]]] | None:
        """The functions b -> J_c^-1 b and x -> J_c^-T x of a square J_c, which it may overwrite;
        None if there are fewer rows than motions, or A is damped."""
        ...

    @property
    def levels(self) -> Callable[[Any], Callable[[Any, Any], Any]] | None:
        """For tasks by priority with rows J_c: the function (right, c_p) -> c of the motion nearest
        to c_p, or to rest for None, by `laws.task.by_priority`."""
        ...

    @property
    def damped(self) -> Callable[[Any, Any], Any] | None:
        """The function (J_c, A) -> A, damped if the task is nearly singular; None without
        damping."""
        ...

    @property
    def factor_mobility(self) -> Callable[[Any, Any], Callable[[Any], Any]]:
        """The function b -> A^-1 b of J_c and A."""
        ...
