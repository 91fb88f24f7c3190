"""Hyperbolic tangents and exponentials of C, several at once: a part of the time that libm takes.

Friction has one or both for every joint. Those that do not wait for each other stand in lines one
behind the other (see `c_source`). Here they become functions without branches, which a processor
works on side by side; many become one call, which a compiler can vectorise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

__all__ = ["AT_ONCE", "curves", "curves_together"]

_HEAD = r"""/* Hyperbolic tangents and exponentials without branches, so that processors and
 * compilers can do several at once. The error is below 2 units in the last place.
 *
 * With k whole and x = z + k log(2) / 2, |z| < 0.56; of the two parts of the logarithm the first
 * has so few digits that its product with k is exact. With S = 2^k and T = tanh z,
 *
 *   tanh x = 1 - (2 - 2 T) / ((S + 1) + (S - 1) T)      exp 2 x = S (1 + T) / (1 - T)
 *
 * T = z + z^3 P(z^2), with P of equal ripples (Remez), below 3e-17. Where k = 0, T is the tangent.
 * Beyond 22, tanh is 1; exponents beyond 700 go to libm. */
#include <float.h>
#ifndef HOLOCTL_ROUND
#if FLT_EVAL_METHOD == 0
/* 1.5 * 2^52 leaves no digits behind the point */
#define HOLOCTL_ROUND(x) (((x) + 6755399441055744.0) - 6755399441055744.0)
#else
#define HOLOCTL_ROUND(x) floor((x) + 0.5)
#endif
#endif

/* 2^k of a whole k, by the digits of a double */
static inline double holoctl_power(double k) {
  union {
    double x;
    unsigned long long digits;
  } two;
  two.x = k + 6755399441055744.0;
  two.digits = (two.digits + 1023ULL) << 52;
  return two.x;
}

/* T of z = x - k log(2) / 2 */
static inline double holoctl_reduced(double x, double k) {
  const double z = (x - k * 0.34657359027994517) - k * 2.7489615093541856e-14;
  const double y = z * z, yy = y * y, yyyy = yy * yy;
  const double near = (-0.33333333333332144 + y * 0.13333333333144518) +
      yy * (-0.053968253864242983 + y * 0.02186948569242676);
  const double far = (-0.008863190711768889 + y * 0.003591689069345004) +
      yy * (-0.0014530649523271152 + y * 0.0005786852168387066) +
      yyyy * (-0.00020956168592182198 + y * 5.050748722382475e-05);
  return z + (z * y) * (near + yyyy * far);
}

"""

_FUNCTIONS = {
    "tangent": r"""
static inline double tangent(double x) {
  const double size = fabs(x), a = size > 22.0 ? 22.0 : size;
  const double k = HOLOCTL_ROUND(a * 1.4426950408889634 - 0.3);
  const double T = holoctl_reduced(a, k + k), S = holoctl_power(k + k);
  const double large = 1.0 + (T + T - 2.0) / ((S + 1.0) + (S - 1.0) * T);
  return copysign(k > 0.0 ? large : T, x);
}

""",
    "tangents": r"""
static inline void tangents(const double *restrict x, int n, double *restrict y) {
  for (int i = 0; i < n; i++) y[i] = tangent(x[i]);
}

""",
    "holoctl_exponential": r"""
static inline double holoctl_exponential(double x) {
  const double below = x < -700.0 ? -700.0 : x, a = below > 700.0 ? 700.0 : below;
  const double k = HOLOCTL_ROUND(a * 1.4426950408889634);
  const double T = holoctl_reduced(0.5 * a, k);
  return holoctl_power(k) * ((1.0 + T) / (1.0 - T));
}

""",
    "exponential": r"""
static inline double exponential(double x) {
  return fabs(x) < 700.0 ? holoctl_exponential(x) : exp(x);
}

""",
    "exponentials": r"""
static inline void exponentials(const double *restrict x, int n, double *restrict y) {
  for (int i = 0; i < n; i++) y[i] = holoctl_exponential(x[i]);
  for (int i = 0; i < n; i++)
    if (!(fabs(x[i]) < 700.0)) y[i] = exp(x[i]);
}

""",
}
"""Name to C, each behind those that it calls; ``tangents`` and the like are of n numbers."""

AT_ONCE = 4
"""Numbers are filled up with zeros to a multiple of this, for processors that take several."""

_FEW = 8
"""So many are quicker one by one: what goes through an array waits until it has arrived there."""

_LINE = re.compile(r"  const double (x\d+) = (tanh|exp)\((\S+)\);")
_NAMES = {"tanh": "tangent", "exp": "exponential"}


def curves_together(source: str) -> str:
    """Straight-line C with these functions in the place of libm's; as it was without such."""
    found = "\n".join(_lines(source.split("\n")))
    called = {name for name in _FUNCTIONS if f" {name}(" in found}
    return curves(called) + found if called else source


def curves(names: Iterable[str]) -> str:
    """The C of these functions and of those that they call; ``float.h`` and ``math.h`` before."""
    wanted = set(names)
    for name in reversed(_FUNCTIONS):
        text = "".join(_FUNCTIONS[x] for x in wanted)
        if f" {name}(" in text:
            wanted.add(name)
    return _HEAD + "".join(_FUNCTIONS[name].lstrip("\n") for name in _FUNCTIONS if name in wanted)


def _lines(given: list[str]) -> Iterator[str]:
    run: list[tuple[str, str]] = []
    kind, comments, calls = "", list[str](), 0
    for line in given:  # the last closes a function
        found = _LINE.fullmatch(line)
        if run and not (line.startswith("  /*") or (found and found.group(2) == kind)):
            yield from comments
            yield from _together(kind, run, calls)
            run, comments, calls = [], [], calls + 1
        if found:
            kind = found.group(2)
            run.append((found.group(1), found.group(3)))
        elif run:
            comments.append(line)
        else:
            yield line


def _together(kind: str, run: list[tuple[str, str]], number: int) -> Iterator[str]:
    if len(run) <= _FEW:
        for value, of in run:
            yield f"  const double {value} = {_NAMES[kind]}({of});"
        return
    n = -(-len(run) // AT_ONCE) * AT_ONCE
    filled = [*(of for _, of in run), *["0.0"] * (n - len(run))]
    place, result = f"{kind}_in{number}", f"{kind}_of{number}"
    yield f"  const double {place}[{n}] = {{{', '.join(filled)}}};"
    yield f"  double {result}[{n}];"
    yield f"  {_NAMES[kind]}s({place}, {n}, {result});"
    for i, (value, _) in enumerate(run):
        yield f"  const double {value} = {result}[{i}];"
