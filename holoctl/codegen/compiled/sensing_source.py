"""The C source of an extension module that follows the closed state from what is measured.

What a loop remembers is a `memory` of C in an array of bytes, one for each loop. The module has

    size()                    of a memory, bytes
    begin(memory, q, t)       start at a closed configuration; whether that is possible
    resume(memory, kept)      the same where Python filled in q, t and the past; whether the borders
                              of memory still hold
    bind(memory, unusual, doubtful)
                              the tick, state(q_m, v_m, [t]) -> q, v
    bind_torque(memory, unusual, doubtful, torque, doubtful_torque)
                              torque_from_motors(q_m, v_m, q_ref, v_ref, a_ref, [t], out=) -> u

Of the functions behind a tick, `unusual` takes arguments that cannot be taken as they are, and
`doubtful` answers where C refuses; the memory is then as it was. `torque` is the law in another
module, `doubtful_torque` answers where that is in doubt, at the state that was found.
"""

from __future__ import annotations

from holoctl.codegen.c_source import c_function
from holoctl.codegen.c_text import filled, normalised
from holoctl.codegen.closed_state_c import laws_of, state_values
from holoctl.codegen.compiled.extension_source import HEAD, SUPPORT, module_text
from holoctl.codegen.curves import curves_together
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.closed_state import ClosedState
from holoctl.codegen.laws.readings import unit_readings

__all__ = ["sensing_source"]

_MEMORY = """
static law_memory *memory_of(PyObject *x) {
  PyArrayObject *a = (PyArrayObject *)x;
  if (!PyArray_CheckExact(x) || PyArray_NBYTES(a) != (npy_intp)sizeof(law_memory) ||
      !PyArray_ISCARRAY(a)) {
    PyErr_SetString(PyExc_TypeError, "a memory of this module is needed");
    return NULL;
  }
  return (law_memory *)PyArray_DATA(a);
}

static PyObject *law_size(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
  return PyLong_FromSize_t(sizeof(law_memory));
}

static PyObject *law_begin(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
  law_memory *m;
  const double *q;
  double t;
  if (nargs != 3) {
    PyErr_SetString(PyExc_TypeError, "begin takes memory, q, t");
    return NULL;
  }
  t = PyFloat_AsDouble(args[2]);
  if (PyErr_Occurred() || !(m = memory_of(args[0])) || !(q = numbers(args[1], NQ))) return NULL;
  return PyBool_FromLong(begin(m, q, t) == FOUND);
}

static PyObject *law_resume(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
  law_memory *m;
  double phi[PHI], left_out[LEFT_OUT], doubt;
  int kept;
  if (nargs != 2) {
    PyErr_SetString(PyExc_TypeError, "resume takes memory, kept");
    return NULL;
  }
  if (!(m = memory_of(args[0])) || (kept = PyObject_IsTrue(args[1])) < 0) return NULL;
  if (!kept) first_borders(m);
  see_motion(m, m->q, m->t, m->gamma, m->drift, phi, left_out, &m->det, &doubt);
  for (int i = 0; i < NV * M; i++) m->before[i] = m->gamma[i];
  for (int j = 0; j < M; j++) m->step[j] = 0.0;
  if (!kept) m->decided = m->det;
  m->open = largest(left_out, LEFT_OUT);
  return PyBool_FromLong(doubt < 1.0 && largest(phi, PHI) <= TIGHT);
}
"""

_TICKS = """
/* The next state of a memory; 0 where there is no answer here. */
static int advance(law_memory *m, const double *given, const double *rates, double t) {
  law_memory next;
  double x[NUMBERS], far;
  if (!(squares(given, NUMBERS) + squares(rates, M) + t * t < INFINITY)) return 0;
  memcpy(x, given, sizeof x);
  if (!(%(unit)s)) return 0;
  if (attempt(m, x, rates, t, &next, &far) != FOUND) return 0;
  *m = next;
  return 1;
}

/* Time in args[n], where it is given; 0 for another type. */
static int time_of(PyObject *const *args, Py_ssize_t nargs, Py_ssize_t n, double *t) {
  *t = 0.0;
  if (nargs == n) return 1;
  if (nargs != n + 1 || !PyFloat_Check(args[n])) return 0;
  *t = PyFloat_AS_DOUBLE(args[n]);
  return *t - *t == 0.0;
}

static PyObject *vector_of(const double *x, npy_intp size) {
  PyObject *found = PyArray_SimpleNew(1, &size, NPY_DOUBLE);
  if (found) memcpy(PyArray_DATA((PyArrayObject *)found), x, (size_t)size * sizeof(double));
  return found;
}

/* self is (memory, unusual, doubtful) */
static PyObject *law_tick(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *names) {
  law_memory *m = (law_memory *)PyArray_DATA((PyArrayObject *)PyTuple_GET_ITEM(self, 0));
  const double *x, *rates;
  double t, v[NV];
  PyObject *found, *first, *second;
  if (nargs < 2 || names || !time_of(args, nargs, 2, &t) || !(x = vector(args[0], NUMBERS)) ||
      !(rates = vector(args[1], M)))
    return PyObject_Vectorcall(PyTuple_GET_ITEM(self, 1), args, nargs, names);
  if (!advance(m, x, rates, t))
    return PyObject_Vectorcall(PyTuple_GET_ITEM(self, 2), args, nargs, names);
  rates_there(m, rates, v);
  first = vector_of(m->q, NQ);
  second = vector_of(v, NV);
  found = first && second ? PyTuple_Pack(2, first, second) : NULL;
  Py_XDECREF(first);
  Py_XDECREF(second);
  return found;
}

typedef void (*torque_law)(const double *, const double *, const double *, const double *,
                           const double *, const double *, double *, double *);

/* self is (memory, unusual, doubtful, torque, doubtful torque) */
static PyObject *law_torque(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *names) {
  law_memory *m = (law_memory *)PyArray_DATA((PyArrayObject *)PyTuple_GET_ITEM(self, 0));
  const torque_law torque =
      (torque_law)PyCapsule_GetPointer(PyTuple_GET_ITEM(self, 3), "holoctl.torque");
  const double *x, *rates, *ref[3];
  double t, doubt = 0.0, v[NV], u[NU];
  PyObject *out = NULL, *more[8], *found;
  Py_ssize_t count = names ? PyTuple_GET_SIZE(names) : 0;
  if (!torque) return NULL;
  if (nargs < 5 || !time_of(args, nargs, 5, &t) || count > 1) goto unusual;
  if (count) {
    if (!is_word(PyTuple_GET_ITEM(names, 0), "out")) goto unusual;
    out = args[nargs] == Py_None ? NULL : args[nargs];
  }
  if (!(x = vector(args[0], NUMBERS)) || !(rates = vector(args[1], M))) goto unusual;
  for (int i = 0; i < 3; i++)
    if (!(ref[i] = vector(args[2 + i], NU))) goto unusual;
  if (out && (!vector(out, NU) || !PyArray_ISWRITEABLE((PyArrayObject *)out))) goto unusual;
  if (!advance(m, x, rates, t))
    return PyObject_Vectorcall(PyTuple_GET_ITEM(self, 2), args, nargs, names);
  rates_there(m, rates, v);
  torque(m->q, v, ref[0], ref[1], ref[2], &t, u, &doubt);
  if (!(doubt < 1.0) || !(squares(v, NV) + squares(ref[0], NU) + squares(ref[1], NU) +
                          squares(ref[2], NU) + squares(u, NU) < INFINITY)) {
    memcpy(more, args, (size_t)(nargs + count) * sizeof more[0]);
    more[0] = vector_of(m->q, NQ);
    more[1] = vector_of(v, NV);
    found = more[0] && more[1]
        ? PyObject_Vectorcall(PyTuple_GET_ITEM(self, 4), more, nargs, names) : NULL;
    Py_XDECREF(more[0]);
    Py_XDECREF(more[1]);
    return found;
  }
  if (!out) return vector_of(u, NU);
  memcpy(PyArray_DATA((PyArrayObject *)out), u, sizeof u);
  Py_INCREF(out);
  return out;
unusual:
  return PyObject_Vectorcall(PyTuple_GET_ITEM(self, 1), args, nargs, names);
}

static PyMethodDef tick_definition = {
  "state", (PyCFunction)(void (*)(void))law_tick, METH_FASTCALL | METH_KEYWORDS,
  "Compiled; see the method of this name of a loop of holoctl.Compiled."
};

static PyMethodDef torque_definition = {
  "torque_from_motors", (PyCFunction)(void (*)(void))law_torque, METH_FASTCALL | METH_KEYWORDS,
  "Compiled; see the method of this name of a loop of holoctl.Compiled."
};

static PyObject *bound(PyMethodDef *definition, PyObject *const *args, Py_ssize_t nargs,
                       Py_ssize_t wanted) {
  PyObject *self, *tick;
  if (nargs != wanted) {
    PyErr_SetString(PyExc_TypeError, "another number of arguments is needed");
    return NULL;
  }
  if (!memory_of(args[0])) return NULL;
  self = PyTuple_New(wanted);
  if (!self) return NULL;
  for (Py_ssize_t i = 0; i < wanted; i++) {
    Py_INCREF(args[i]);
    PyTuple_SET_ITEM(self, i, args[i]);
  }
  tick = PyCFunction_NewEx(definition, self, NULL);
  Py_DECREF(self);
  return tick;
}

static PyObject *law_bind(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
  return bound(&tick_definition, args, nargs, 3);
}

static PyObject *law_bind_torque(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
  return bound(&torque_definition, args, nargs, 5);
}
"""


def sensing_source(E: Expressions, law: ClosedState, module: str) -> str:
    """The source of a module of this name."""
    kernel = curves_together("\n".join(c_function(f) for f in laws_of(law)))
    sizes = f"enum {{ NQ = {E.mech.nq}, NV = {E.mech.nv}, NU = {max(E.mech.nu, 1)} }};\n"
    values = state_values(E, law, "law") | {"normalise_unit": normalised("unit", E.tree.unit_parts)}
    norms = filled("normalise.c", values) if E.tree.unit_parts else ""
    unit = normalised("x", unit_readings(E, law.sensing.sensors))
    body = [
        HEAD, filled("divides.c"), sizes, kernel, SUPPORT, "\n", filled("largest.c"), norms,
        filled("closed_state_memory.h", values), filled("closed_state.c", values), _MEMORY,
        _TICKS.replace("%(unit)s", unit or "1"),
    ]  # fmt: skip
    methods = ("size", "begin", "resume", "bind", "bind_torque")
    return "".join([*body, module_text("law", methods, module)])
