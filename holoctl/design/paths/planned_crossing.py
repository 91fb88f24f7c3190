"""A type-2 singularity that a motion crosses as planned."""

from __future__ import annotations

from dataclasses import dataclass

from holoctl.base.checks import Array, Vector, freeze, unpickled

__all__ = ["PlannedCrossing"]


@dataclass(frozen=True, eq=False)
class PlannedCrossing:
    """A type-2 singularity on a `Trajectory`, which ``retime(cross=True)`` plans to cross.

    Attributes
    ----------
    t : float
        Time, s.
    q : (nq,) array
        Configuration there.
    v : (nv,) array
        Velocity there, rad/s or m/s.
    u : (2, nu) array
        Motor efforts just before and just after it, N m or N: the same, unless the third derivative
        of the path jumps there, as at a way-point.
    motion : (nv,) array
        The motion that the motors lose, ``gamma w`` with ``w' gamma' B = 0``: a velocity with all
        motors at rest, largest entry 1 (scaled).
    lost_motion : str
        The same in words.

    See Also
    --------
    retime : plans it.
    CrossingControl : controls it.

    Examples
    --------
    >>> import holoctl as hc
    >>> hc.results.PlannedCrossing.__name__
    'PlannedCrossing'
    """

    t: float
    q: Vector
    v: Vector
    u: Array
    motion: Vector
    lost_motion: str

    __setstate__ = unpickled

    def __post_init__(self) -> None:
        freeze(self)

    def __repr__(self) -> str:
        return f"<PlannedCrossing at t = {self.t:.6g} s: {self.lost_motion}>"
