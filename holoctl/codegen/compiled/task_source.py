"""The C source of an extension module around the torque of a law of tasks.

It has ``raw`` as every law (see extension_source.py), and

    bind(unusual, doubtful, pose)
             -> the tick, torque(q, v, reference, [t], out=), with the same two functions behind it;
             `pose` is the type of poses, whose ``homogeneous`` is read

A reference that is no array, no pose, nor a tuple of such a value with rate and acceleration, and
whatever else cannot be taken as it is, goes to the first function.
"""

from __future__ import annotations

from collections.abc import Sequence

from holoctl.codegen.compiled.extension_source import HEAD, SUPPORT, Law, module_text, raw_source

__all__ = ["task_source"]

_TICK = """
enum { NQ = %(nq)d, NV = %(nv)d, NU = %(nu)d, VALUE = %(value)d, ROWS = %(rows)d };

/* Which coordinates of the translation of a pose are positions of the value; and whether its
 * rotation follows. */
static const int along[] = {%(along)s};
enum { POSITIONS = %(positions)d, TURNS = %(turns)d };

static const double no_rates[ROWS] = {0.0};

/* The value of a reference, read into `room` if it is a pose; NULL for what cannot be read here. */
static const double *value_of(PyObject *x, PyObject *pose, double *room) {
  static PyObject *homogeneous;
  PyArrayObject *X;
  int good;
  if ((PyObject *)Py_TYPE(x) != pose) return TURNS ? NULL : vector(x, VALUE);
  if (!POSITIONS && !TURNS) return NULL;
  if (!homogeneous) homogeneous = PyUnicode_InternFromString("homogeneous");
  X = homogeneous ? (PyArrayObject *)PyObject_GetAttr(x, homogeneous) : NULL;
  if (!X) {
    PyErr_Clear();
    return NULL;
  }
  good = PyArray_CheckExact((PyObject *)X) && PyArray_TYPE(X) == NPY_DOUBLE &&
         PyArray_NDIM(X) == 2 && PyArray_DIM(X, 0) == 4 && PyArray_DIM(X, 1) == 4 &&
         PyArray_ISALIGNED(X);
  for (int i = 0; good && i < POSITIONS; i++) room[i] = *(double *)PyArray_GETPTR2(X, along[i], 3);
  for (int i = 0; good && TURNS && i < 9; i++)
    room[POSITIONS + i] = *(double *)PyArray_GETPTR2(X, i / 3, i %% 3);
  Py_DECREF(X);
  return good ? room : NULL;
}

/* self is (unusual, doubtful, pose) */
static PyObject *torque_tick(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *names) {
  PyObject *out = NULL, *reference;
  const double *q, *v, *value, *rate = no_rates, *acceleration = no_rates;
  double room[VALUE], u[NU], t = 0.0, doubt = 0.0, finite;
  Py_ssize_t count = names ? PyTuple_GET_SIZE(names) : 0;
  if (nargs < 3 || nargs > 4 || count > 1) goto unusual;
  if (nargs == 4) {
    if (!PyFloat_Check(args[3])) goto unusual;
    t = PyFloat_AS_DOUBLE(args[3]);
  }
  if (count) {
    if (!is_word(PyTuple_GET_ITEM(names, 0), "out")) goto unusual;
    out = args[nargs] == Py_None ? NULL : args[nargs];
  }
  if (!(q = vector(args[0], NQ)) || !(v = vector(args[1], NV)) || !(t - t == 0.0)) goto unusual;
  reference = args[2];
  if (PyTuple_CheckExact(reference)) {
    if (PyTuple_GET_SIZE(reference) != 3) goto unusual;
    if (!(rate = vector(PyTuple_GET_ITEM(reference, 1), ROWS)) ||
        !(acceleration = vector(PyTuple_GET_ITEM(reference, 2), ROWS)))
      goto unusual;
    reference = PyTuple_GET_ITEM(reference, 0);
  }
  if (!(value = value_of(reference, PyTuple_GET_ITEM(self, 2), room))) goto unusual;
  if (out && (!vector(out, NU) || !PyArray_ISWRITEABLE((PyArrayObject *)out))) goto unusual;
  torque(q, v, value, rate, acceleration, &t, u, &doubt);
  finite = squares(q, NQ) + squares(v, NV) + squares(value, VALUE) + squares(rate, ROWS) +
           squares(acceleration, ROWS) + squares(u, NU);
  if (!(doubt < 1.0) || !(finite < INFINITY))
    return PyObject_Vectorcall(PyTuple_GET_ITEM(self, 1), args, nargs, names);
  if (out) Py_INCREF(out);
  else {
    npy_intp shape[1] = {NU};
    out = PyArray_SimpleNew(1, shape, NPY_DOUBLE);
    if (!out) return NULL;
  }
  memcpy(PyArray_DATA((PyArrayObject *)out), u, sizeof u);
  return out;
unusual:
  return PyObject_Vectorcall(PyTuple_GET_ITEM(self, 0), args, nargs, names);
}

static PyMethodDef torque_definition = {
  "torque", (PyCFunction)(void (*)(void))torque_tick, METH_FASTCALL | METH_KEYWORDS,
  "Compiled; see the method of this name of holoctl.CompiledTasks."
};

static PyObject *torque_bind(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
  PyObject *self, *tick;
  if (nargs != 3) {
    PyErr_SetString(PyExc_TypeError, "bind takes two functions and a type");
    return NULL;
  }
  self = PyTuple_Pack(3, args[0], args[1], args[2]);
  tick = self ? PyCFunction_NewEx(&torque_definition, self, NULL) : NULL;
  Py_XDECREF(self);
  return tick;
}
"""


def task_source(kernel: str, law: Law, along: Sequence[int], turns: bool, module: str) -> str:
    """The source of a module of this name.

    Parameters
    ----------
    kernel : str
        The C function ``torque``.
    law : Law
        Of the inputs q, v, value, rate and acceleration.
    along : sequence of int
        Which coordinates of a pose's translation stand in the value, if any.
    turns : bool
        Whether its rotation follows.
    module : str
    """
    sizes = dict(law.inputs)
    tick = _TICK % {
        "nq": sizes["q"], "nv": sizes["v"], "nu": law.outputs[0][1], "value": sizes["value"],
        "rows": sizes["rate"], "along": ", ".join(map(str, along)) or "0",
        "positions": len(along), "turns": int(turns),
    }  # fmt: skip
    parts = [HEAD, kernel, SUPPORT, raw_source(law), tick]
    return "".join([*parts, module_text(law.name, ("raw", "bind"), module)])
