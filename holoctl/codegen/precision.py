"""Double and single precision: what laws and their C derive from the unit roundoff.

The text of the C is written in double precision, once. `Precision.text` turns it into single
precision: types, constants, and the functions of libm. Limits of guards and tolerances follow from
``eps``, the distance from one to the next number:

    solutions     u is lost to eps / least_pivot: a smaller scaled pivot is in doubt
    iterations    rows cannot be evaluated to better than a few eps
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from holoctl.base.errors import InputError
from holoctl.base.tolerances import CLOSED, LEFT_OPEN, REDUCED, TOLERANCES

__all__ = ["DOUBLE", "PRECISIONS", "SINGLE", "Precision"]

LOST_SINGLE = 2e-4
"""In single precision a result is in doubt where pivots may lose more than this share of it."""

EPS, EPS_SINGLE = float(np.finfo(np.float64).eps), float(np.finfo(np.float32).eps)

NO_ROUNDING = 1e-200
"""Smaller constants keep divisors from zero; others below single precision are products of rounding
errors of the geometry, and become zero."""

_LIBM = (
    "sqrt fabs floor ceil sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp "
    "log pow fmod copysign hypot log1p expm1 fmin fmax ldexp"
)
_NAMES = {
    "double": "float", "HUGE_VAL": "HUGE_VALF",
    **{f"DBL_{x}": f"FLT_{x}" for x in ("EPSILON", "MAX", "MIN", "MANT_DIG", "MAX_EXP")},
    **{x: f"{x}f" for x in _LIBM.split()},
}  # fmt: skip
_TOKENS = re.compile(
    r"(?P<kept>/\*.*?\*/|\"(?:[^\"\\]|\\.)*\"|^[^\n]*\bprintf\([^\n]*$)"
    r"|(?P<number>(?<![\w.])(?:\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)(?![\w.]))"
    r"|(?P<name>\b[A-Za-z_]\w*)",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Precision:
    """A precision of floating-point numbers.

    Attributes
    ----------
    name : str
        ``"double"`` or ``"single"``.
    eps : float
        The distance from one to the next number.
    least_pivot : float
        A scaled pivot of this size puts a result in doubt.
    reduced : float
        So does a pivot of a symmetric matrix that is smaller than its size by this factor.
    most_condition : float
        So does an estimate of the condition number of the scaled constraints of this size.
    unit_norm : float
        One over how far the square of a norm may be from one.
    acceleration : float
        Largest relative violation of redundant rows by the acceleration, at an exact state.
    tolerances : dict of str to float
        The tolerances of iterations, by the names that templates have for them.
    closed, left_open : float
        Closure errors, scaled: of a configuration to start from; of redundant rows.
    nearly_settled : float
        After a correction of this size, scaled, rows are expected to be closed, and checked.
    caution : float
        The self-test allows so many times the rounding that is expected.
    """

    name: str
    eps: float
    least_pivot: float
    reduced: float
    most_condition: float
    unit_norm: float
    acceleration: float
    closed: float
    left_open: float
    nearly_settled: float
    caution: float
    tolerances: dict[str, float] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes of a number."""
        return 8 if self is DOUBLE else 4

    @property
    def values(self) -> dict[str, object]:
        """What templates are filled with."""
        single = self is not DOUBLE
        return {
            "name": self.name, "single": single, "word": "float" if single else "double",
            "bytes": self.size, "bits": 8 * self.size,
            "digits": 24 if single else 53, "exponents": 128 if single else 1024,
            "huge": "1e30" if single else "1e300", "below_one": repr(1.0 - 0.5 * self.eps),
            "rounding": "12582912.0" if single else "6755399441055744.0",
            "wild": 250 if single else 2000, "wild_least": 122 if single else 976,
            "least_pivot": f"{self.least_pivot:.2g}",
            "state_off": "1e-4" if single else "1e-10", "rate_off": "1e-3" if single else "1e-9",
            **{x: repr(y) for x, y in self.tolerances.items()},
        }  # fmt: skip

    def text(self, c: str) -> str:
        """C in double precision, in this precision: comments and lines that print stay.

        Raises
        ------
        InputError
            For a constant that this precision does not have.
        """
        return c if self is DOUBLE else _TOKENS.sub(_single, c)

    def rounded(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The numbers that remain of x in this precision."""
        return x if self is DOUBLE else x.astype(np.float32).astype(float)


def _single(found: re.Match[str]) -> str:
    if found["number"]:
        return _number(found["number"])
    name = found["name"]
    return found[0] if name is None else _NAMES.get(name, name)


def _number(text: str) -> str:
    """A constant of C as a float."""
    x = float(text)
    with np.errstate(over="ignore"):
        near = np.float32(x)
    lost = 0.0 < abs(x) < float(np.finfo(np.float32).tiny)
    if not math.isfinite(near) or (lost and abs(x) < NO_ROUNDING):
        raise InputError(f"the number {text} is beyond single precision; export it in double")
    return "0.0f" if lost else f"{near!s}f"


DOUBLE = Precision(
    "double", EPS,
    least_pivot=1e-4, reduced=REDUCED, most_condition=math.inf,
    unit_norm=5e11, acceleration=TOLERANCES["acceleration"],
    closed=CLOSED, left_open=LEFT_OPEN, nearly_settled=2e-7, caution=100.0,
    tolerances={"OFF_A_BOUND": 1e-14, "DEPENDENT_BOUND": 1e-20},
)  # fmt: skip
"""With the tolerances of `holoctl.base.tolerances`."""

SINGLE = Precision(
    "single", EPS_SINGLE,
    least_pivot=EPS_SINGLE / LOST_SINGLE, reduced=LOST_SINGLE / EPS_SINGLE,
    most_condition=16.0 * LOST_SINGLE / EPS_SINGLE,
    unit_norm=5e11 * EPS / EPS_SINGLE, acceleration=math.sqrt(EPS_SINGLE),
    closed=100.0 * EPS_SINGLE, left_open=80.0 * EPS_SINGLE,
    nearly_settled=math.sqrt(3.0 * EPS_SINGLE), caution=8.0,
    tolerances={
        "SETTLED_TICK": 16.0 * EPS_SINGLE, "TIGHT": 80.0 * EPS_SINGLE,
        "NOT_A_ROTATION": 32.0 * EPS_SINGLE, "OFF_A_BOUND": 45.0 * EPS_SINGLE,
        "DEPENDENT_BOUND": (1000.0 * EPS_SINGLE) ** 2, "EFFORT_REGULAR": 100.0 * EPS_SINGLE,
        "UNMOVED": 10.0 * EPS_SINGLE, "FARTHEST_ASKED": 256.0,
    },
)  # fmt: skip
"""With what rounding leaves of them."""

PRECISIONS = {x.name: x for x in (DOUBLE, SINGLE)}
