"""The C source of an extension module around a C function.

A *law* is a function ``void law(const double *in..., const double *t, double *out..., double
*doubt)``. Its extension module has

    raw(in..., t, out...)    fills arrays, judges nothing

and where it is for control loops

    pointer()                the function of C, in a capsule
    bind(unusual, doubtful)  -> the tick, law(in..., [t], out=): arrays that can be taken as they
                             are go straight into C; anything else goes to the first of the two
                             Python functions, any doubt to the second
    batch(in..., t, out..., flags, next, piece, count)
                             many states, without the GIL: takes pieces, from where next[0] is,
                             until all are taken, so that several threads share them; flags tell
                             of doubt

and where states can be placed (laws/placed.py) and the law gives their acceleration

    step(q, v, tau, t, h, A, B, C, first, x, last, K)
                             the stages of an explicit step with efforts held: fills K, x and the
                             stage before the last one; whether the guard was never in doubt
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["HEAD", "SUPPORT", "Law", "extension_source", "module_text", "raw_source"]


@dataclass(frozen=True)
class Law:
    """What the wrapper needs to know of one C function.

    Attributes
    ----------
    name : str
    inputs : tuple of (str, int)
        Name and size of each input but t.
    outputs : tuple of (str, int)
        The same of the outputs; the first is what the tick returns, the last is ``doubt``.
    tick : bool
        Whether it is called in control loops, or its raw form is enough.
    placed : bool
        Whether the C function `placed` stands before it.
    tables : int
        How many of its outputs, the first ones, are asked for over many states; 0: there is no
        ``batch``.
    """

    name: str
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    tick: bool = True
    placed: bool = False
    tables: int = 1


# ----------------------------------------------------------------------------------- source

HEAD = """\
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <math.h>
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "flags that assume finite numbers (-ffast-math, -Ofast) would remove the guard"
#endif
#if defined(__ASSOCIATIVE_MATH__)
#error "flags that put sums together otherwise (-funsafe-math-optimizations) change the numbers"
#endif

"""

SUPPORT = """
/* A float64 vector of this size that can be read in place. */
static inline const double *vector(PyObject *x, npy_intp size) {
  PyArrayObject *a = (PyArrayObject *)x;
  if (!PyArray_CheckExact(x) || PyArray_TYPE(a) != NPY_DOUBLE || PyArray_NDIM(a) != 1 ||
      PyArray_DIM(a, 0) != size || !PyArray_ISCARRAY_RO(a))
    return NULL;
  return (const double *)PyArray_DATA(a);
}

/* The same of any shape, for callers that have checked it. */
static inline double *numbers(PyObject *x, npy_intp size) {
  PyArrayObject *a = (PyArrayObject *)x;
  if (!PyArray_CheckExact(x) || PyArray_TYPE(a) != NPY_DOUBLE || PyArray_SIZE(a) < size ||
      !PyArray_ISCARRAY_RO(a)) {
    PyErr_SetString(PyExc_TypeError, "a float64 array, contiguous and large enough, is needed");
    return NULL;
  }
  return (double *)PyArray_DATA(a);
}

/* A number that is finite if all entries are, and their squares. */
static inline double squares(const double *x, int n) {
  double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
  int i = 0;
  for (; i + 3 < n; i += 4) {
    a += x[i] * x[i];
    b += x[i + 1] * x[i + 1];
    c += x[i + 2] * x[i + 2];
    d += x[i + 3] * x[i + 3];
  }
  for (; i < n; i++) a += x[i] * x[i];
  return (a + b) + (c + d);
}

static inline int is_word(PyObject *name, const char *word) {
  return PyUnicode_CompareWithASCIIString(name, word) == 0;
}
"""

_TICK = """
/* self is (unusual, doubtful): the functions that take over, with the same arguments. */
static PyObject *{name}_tick(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *names) {{
  PyObject *out = NULL;
  double t = 0.0, doubt = 0.0, finite{results};
  if (nargs < {n} || nargs > {n_t}) goto unusual;
  if (nargs == {n} + 1) {{
    if (!PyFloat_Check(args[{n}])) goto unusual;
    t = PyFloat_AS_DOUBLE(args[{n}]);
  }}
  if (names) {{
    Py_ssize_t count = PyTuple_GET_SIZE(names);
    for (Py_ssize_t i = 0; i < count; i++) {{
      PyObject *value = args[nargs + i], *word = PyTuple_GET_ITEM(names, i);
      if (is_word(word, "out")) out = value;
      else goto unusual;
    }}
  }}
  if (out == Py_None) out = NULL;
{take}
  if ({refused}!(t - t == 0.0)) goto unusual;
  if (out && (!vector(out, {size}) || !PyArray_ISWRITEABLE((PyArrayObject *)out))) goto unusual;
  {call};
  finite = {squares};
  if (!(doubt < 1.0) || !(finite < INFINITY))
    return PyObject_Vectorcall(PyTuple_GET_ITEM(self, 1), args, nargs, names);
  if (out) Py_INCREF(out);
  else {{
    npy_intp shape[1] = {{{size}}};
    out = PyArray_SimpleNew(1, shape, NPY_DOUBLE);
    if (!out) return NULL;
  }}
  memcpy(PyArray_DATA((PyArrayObject *)out), {first}, {size} * sizeof(double));
  return out;
unusual:
  return PyObject_Vectorcall(PyTuple_GET_ITEM(self, 0), args, nargs, names);
}}
"""

_RAW = """
static PyObject *{name}_raw(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {{
  double t, *p[{m}];
  static const npy_intp sizes[{m}] = {{{sizes}}};
  if (nargs != {m} + 1) {{
    PyErr_SetString(PyExc_TypeError, "{name}_raw takes {m} arrays and t");
    return NULL;
  }}
  t = PyFloat_AsDouble(args[{n}]);
  if (t == -1.0 && PyErr_Occurred()) return NULL;
  for (int i = 0; i < {m}; i++)
    if (!(p[i] = numbers(args[i < {n} ? i : i + 1], sizes[i]))) return NULL;
  Py_BEGIN_ALLOW_THREADS
  {call};
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}}
"""

_BATCH = """
static PyObject *{name}_batch(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {{
  double t, *p[{n} + {tables}];
  static const npy_intp sizes[{n} + {tables}] = {{{sizes}}};
  Py_ssize_t piece, count;
  unsigned char *flags;
  npy_int64 *next;
  if (nargs != {n} + {given}) {{
    PyErr_SetString(PyExc_TypeError,
                    "{name}_batch takes {n} arrays, t, {outs}, flags, next, piece, count");
    return NULL;
  }}
  t = PyFloat_AsDouble(args[{n}]);
  piece = PyLong_AsSsize_t(args[{n} + {at_piece}]);
  count = PyLong_AsSsize_t(args[{n} + {at_count}]);
  if (PyErr_Occurred()) return NULL;
  if (count < 0 || count > PY_SSIZE_T_MAX / 4096) {{
    PyErr_SetString(PyExc_ValueError, "{name}_batch: so many states cannot be");
    return NULL;
  }}
  for (int i = 0; i <= {last}; i++)
    if (!(p[i] = numbers(args[i < {n} ? i : i + 1], count * sizes[i]))) return NULL;
  if (!PyArray_CheckExact(args[{n} + {at_flags}]) || !PyArray_CheckExact(args[{n} + {at_next}]) ||
      PyArray_TYPE((PyArrayObject *)args[{n} + {at_flags}]) != NPY_UINT8 ||
      PyArray_TYPE((PyArrayObject *)args[{n} + {at_next}]) != NPY_INT64 ||
      PyArray_SIZE((PyArrayObject *)args[{n} + {at_flags}]) < count ||
      PyArray_SIZE((PyArrayObject *)args[{n} + {at_next}]) != 1 || piece < 1) {{
    PyErr_SetString(PyExc_TypeError, "flags must be of uint8, next of int64, piece above 0");
    return NULL;
  }}
  flags = (unsigned char *)PyArray_DATA((PyArrayObject *)args[{n} + {at_flags}]);
  next = (npy_int64 *)PyArray_DATA((PyArrayObject *)args[{n} + {at_next}]);
  Py_BEGIN_ALLOW_THREADS
  Py_ssize_t k = 0, stop = 0;
  for (;; k++) {{
    if (k == stop) {{
      k = (Py_ssize_t)__atomic_fetch_add(next, piece, __ATOMIC_RELAXED);
      if (k >= count) break;
      stop = k + piece < count ? k + piece : count;
    }}
    double doubt = 0.0, finite{results};
    {call};
    finite = {squares};
    flags[k] = !(doubt < 1.0) || !(finite < INFINITY);
{copies}
  }}
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}}
"""

_STEP = """
/* The slope of x = (d, v), 0 where it is in doubt: q = q0 (+) d, and the law gives v'. */
static int {name}_slope(const double *q0, const double *x, const double *tau, double t,
                        double *slope) {{
  double q[{nq}], doubt = 0.0, off = 0.0;
  placed(q0, x, q, slope, &off);
  {name}(q, x + {nv}, tau, &t, slope + {nv}, &doubt);
  return off < 1.0 && doubt < 1.0 && squares(q, {nq}) + squares(slope, 2 * {nv}) < INFINITY;
}}

/* x = x0 + h sum a[i] K[i] */
static void {name}_stage(double *x, const double *v, double h, const double *a, const double *K,
                         npy_intp count) {{
  double sum[2 * {nv}] = {{0.0}};
  for (npy_intp i = 0; i < count; i++, K += 2 * {nv})
    if (a[i] != 0.0)
      for (int k = 0; k < 2 * {nv}; k++) sum[k] += a[i] * K[k];
  for (int k = 0; k < {nv}; k++) {{
    x[k] = h * sum[k];
    x[{nv} + k] = v[k] + h * sum[{nv} + k];
  }}
}}

static PyObject *{name}_step(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {{
  const double *q, *v, *tau, *A, *B, *C, *first = NULL;
  double t, h, *x, *last, *K;
  npy_intp n, sure = 0;
  if (nargs != 12) {{
    PyErr_SetString(PyExc_TypeError,
                    "{name}_step takes q, v, tau, t, h, A, B, C, first, x, last, K");
    return NULL;
  }}
  t = PyFloat_AsDouble(args[3]);
  h = PyFloat_AsDouble(args[4]);
  if (PyErr_Occurred()) return NULL;
  if (!(B = numbers(args[6], 1))) return NULL;
  n = PyArray_SIZE((PyArrayObject *)args[6]);
  if (!(q = numbers(args[0], {nq})) || !(v = numbers(args[1], {nv})) ||
      !(tau = numbers(args[2], {nv})) || !(A = numbers(args[5], n * n)) ||
      !(C = numbers(args[7], n)) || !(x = numbers(args[9], 2 * {nv})) ||
      !(last = numbers(args[10], 2 * {nv})) || !(K = numbers(args[11], (n + 1) * 2 * {nv})) ||
      (args[8] != Py_None && !(first = numbers(args[8], 2 * {nv}))))
    return NULL;
  Py_BEGIN_ALLOW_THREADS
  sure = squares(tau, {nv}) < INFINITY;
  {name}_stage(last, v, h, A, K, 0);
  if (first) memcpy(K, first, 2 * {nv} * sizeof(double));
  else sure = sure && {name}_slope(q, last, tau, t, K);
  for (npy_intp i = 1; i <= n && sure; i++) {{
    double *here = i < n ? last : x;
    {name}_stage(here, v, h, i < n ? A + i * n : B, K, i);
    sure = {name}_slope(q, here, tau, i < n ? t + C[i] * h : t + h, K + i * 2 * {nv});
  }}
  Py_END_ALLOW_THREADS
  return PyBool_FromLong(sure);
}}
"""

_MODULE = """
static PyMethodDef methods[] = {{
{methods}
  {{NULL, NULL, 0, NULL}}
}};

static struct PyModuleDef definition = {{PyModuleDef_HEAD_INIT, "{module}", "", -1, methods}};

#ifndef HOLOCTL_ROUND
#define HOLOCTL_ROUND(x) floor((x) + 0.5)
#endif

/* Whether the compiler left sums as they are: not all of them have a macro that tells. */
static int holoctl_rounds(void) {{
  volatile double huge = 1e300, one = 1.0, above = 0.75, below = 0.25;
  const double big = huge, x = one;
  if ((big + x) - big > 0.0 || (x - big) + big > 0.0) return 0;
  return HOLOCTL_ROUND(above) - HOLOCTL_ROUND(below) == 1.0;
}}

PyMODINIT_FUNC PyInit_{module}(void) {{
  import_array();
  if (!holoctl_rounds()) {{
    PyErr_SetString(PyExc_ImportError, "its flags put sums together otherwise "
                    "(-funsafe-math-optimizations and the like), which changes the numbers");
    return NULL;
  }}
  return PyModule_Create(&definition);
}}
"""

_BIND = """
static PyMethodDef {name}_definition = {{
  "{name}", (PyCFunction)(void (*)(void)){name}_tick, METH_FASTCALL | METH_KEYWORDS,
  "Compiled; see the method of this name of holoctl.Compiled."
}};

/* {name}_bind(unusual, doubtful) -> the tick, with these two functions behind it */
static PyObject *{name}_bind(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {{
  PyObject *self, *tick;
  if (nargs != 2) {{
    PyErr_SetString(PyExc_TypeError, "{name}_bind takes two functions");
    return NULL;
  }}
  self = PyTuple_Pack(2, args[0], args[1]);
  tick = self ? PyCFunction_NewEx(&{name}_definition, self, NULL) : NULL;
  Py_XDECREF(self);
  return tick;
}}
"""

_POINTER = """
/* The law itself, for other modules. */
static PyObject *{name}_pointer(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {{
  return PyCapsule_New((void *){name}, "holoctl.{name}", NULL);
}}
"""


def extension_source(kernel: str, law: Law, module: str) -> str:
    """The C source of the extension module around the C function of a law."""
    parts, kinds = [HEAD, kernel, SUPPORT, raw_source(law)], ["raw"]
    if law.tick:
        parts.append(_tick(law))
    if law.tables:
        parts, kinds = [*parts, _batch(law)], [*kinds, "batch"]
    if law.tick:
        parts += [_BIND.format(name=law.name), _POINTER.format(name=law.name)]
        kinds += ["bind", "pointer"]
    if law.placed:
        (_, nq), (_, nv), _ = law.inputs
        parts, kinds = [*parts, _STEP.format(name=law.name, nq=nq, nv=nv)], [*kinds, "step"]
    return "".join([*parts, module_text(law.name, kinds, module)])


def module_text(name: str, methods: Sequence[str], module: str) -> str:
    """The end of a source: its methods, of C functions ``<name>_<method>``, and the module."""
    table = "\n".join(
        f'  {{"{method}", (PyCFunction)(void (*)(void)){name}_{method}, METH_FASTCALL, ""}},'
        for method in methods
    )
    return _MODULE.format(methods=table, module=module)


def _results(law: Law) -> str:
    """Declarations of the outputs, in a declaration of doubles."""
    return "".join(f", {name}[{max(size, 1)}]" for name, size in law.outputs[:-1])


def _call(law: Law, given: Sequence[str], outputs: Sequence[str]) -> str:
    return f"{law.name}({', '.join([*given, '&t', *outputs])})"


def _squares(law: Law, given: Sequence[str], results: int = 1) -> str:
    """Finite if all inputs and the first results are."""
    parts = [(x, size) for x, (_, size) in zip(given, law.inputs, strict=True)]
    return " + ".join(f"squares({x}, {n})" for x, n in [*parts, *law.outputs[:results]])


def _tick(law: Law) -> str:
    names = [name for name, _ in law.inputs]
    outputs = [name for name, _ in law.outputs[:-1]]
    return _TICK.format(
        name=law.name,
        n=len(names),
        n_t=len(names) + 1,
        results=_results(law),
        take="\n".join(f"  const double *{n} = vector(args[{i}], {s});"
                       for i, (n, s) in enumerate(law.inputs)),
        refused="".join(f"!{name} || " for name in names),
        size=law.outputs[0][1],
        first=outputs[0],
        call=_call(law, names, [*outputs, "&doubt"]),
        squares=_squares(law, names),
    )  # fmt: skip


def raw_source(law: Law) -> str:
    """The C function ``raw`` of a law."""
    n, m = len(law.inputs), len(law.inputs) + len(law.outputs)
    return _RAW.format(
        name=law.name, n=n, m=m,
        sizes=", ".join(str(size) for _, size in (*law.inputs, *law.outputs)),
        call=_call(law, [f"p[{i}]" for i in range(n)], [f"p[{i}]" for i in range(n, m)]),
    )  # fmt: skip


def _batch(law: Law) -> str:
    n, tables = len(law.inputs), law.tables
    outputs = [name for name, _ in law.outputs[:-1]]
    places = [f"p[{i}] + k * {s}" for i, (_, s) in enumerate(law.inputs)]
    return _BATCH.format(
        name=law.name, n=n, tables=tables, results=_results(law), given=tables + 5,
        at_flags=tables + 1, at_next=tables + 2, at_piece=tables + 3, at_count=tables + 4,
        outs="out" if tables == 1 else f"{tables} outs", last=n + tables - 1,
        sizes=", ".join(str(s) for _, s in (*law.inputs, *law.outputs[:tables])),
        call=_call(law, places, [*outputs, "&doubt"]),
        squares=_squares(law, places, tables),
        copies="\n".join(
            f"    memcpy(p[{n + i}] + k * {size}, {name}, {size} * sizeof(double));"
            for i, (name, size) in enumerate(law.outputs[:tables])
        ),
    )  # fmt: skip
