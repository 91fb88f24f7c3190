"""Plain C from a CasADi function of scalar expressions: straight-line code, no CasADi in it.

The instructions are numbered by value, so that what is computed twice is computed once. A long
function is split into parts of a bounded length, which a compiler handles in a time that grows
with their number only; what passes from one part to another goes through an array. So does what
passes from one stage of a function to the next, of which a caller may leave out the later ones.
"""

from __future__ import annotations

import math
import textwrap
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from holoctl.base.errors import InputError
from holoctl.codegen.casadi_import import casadi_module

__all__ = [
    "PART",
    "Stages",
    "c_function",
    "c_stages",
    "parameters",
]

PART = 550
"""Lines of one part, beside what is stored for others: fewer than 1,000 in all, for reviewers."""

MANY_ZEROS = 8
"""More entries of an output that are always zero are set by a loop."""

_FORMATS = {
    "ASSIGN": "{0}", "ADD": "{0} + {1}", "SUB": "{0} - {1}", "MUL": "{0} * {1}",
    "DIV": "{0} / {1}", "NEG": "-{0}", "EXP": "exp({0})", "LOG": "log({0})",
    "POW": "pow({0}, {1})", "CONSTPOW": "pow({0}, {1})", "SQRT": "sqrt({0})", "SQ": "{0} * {0}",
    "TWICE": "2.0 * {0}", "SIN": "sin({0})", "COS": "cos({0})", "TAN": "tan({0})",
    "ASIN": "asin({0})", "ACOS": "acos({0})", "ATAN": "atan({0})", "LT": "(double)({0} < {1})",
    "LE": "(double)({0} <= {1})", "EQ": "(double)({0} == {1})", "NE": "(double)({0} != {1})",
    "NOT": "(double)({0} == 0.0)", "AND": "(double)({0} != 0.0 && {1} != 0.0)",
    "OR": "(double)({0} != 0.0 || {1} != 0.0)", "FLOOR": "floor({0})", "CEIL": "ceil({0})",
    "FMOD": "fmod({0}, {1})", "FABS": "fabs({0})", "COPYSIGN": "copysign({0}, {1})",
    "SIGN": "(double)(({0} > 0.0) - ({0} < 0.0))",
    "IF_ELSE_ZERO": "({0} != 0.0 ? {1} : 0.0)", "FMIN": "({0} < {1} ? {0} : {1})",
    "FMAX": "({0} > {1} ? {0} : {1})", "INV": "1.0 / {0}", "SINH": "sinh({0})", "COSH": "cosh({0})",
    "TANH": "tanh({0})", "ASINH": "asinh({0})", "ACOSH": "acosh({0})", "ATANH": "atanh({0})",
    "ATAN2": "atan2({0}, {1})", "HYPOT": "hypot({0}, {1})", "LOG1P": "log1p({0})",
    "EXPM1": "expm1({0})",
}  # fmt: skip
_COMMUTE = ("ADD", "MUL", "EQ", "NE", "AND", "OR", "FMIN", "FMAX", "HYPOT")
_COMMUTING = frozenset(_FORMATS[op] for op in _COMMUTE)
_GATHERED = (_FORMATS["TANH"], _FORMATS["EXP"])
"""Slow operations that are placed in consecutive lines if possible: `batched_tanh_exp` makes one
call of them."""


@dataclass
class _CProgram:
    """Values in the order of their computation: text with ``{}`` for the operands."""

    formats: list[str] = field(default_factory=list)
    operands: list[tuple[int, ...]] = field(default_factory=list)
    outputs: list[tuple[int, int, int]] = field(default_factory=list)  # output, entry, value
    known: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)
    comments: dict[int, str] = field(default_factory=dict)  # the comment before a value


def parameters(function: Any) -> str:
    """The C parameters: a const pointer for each input, a pointer for each output."""
    inputs = [f"const double *{function.name_in(i)}" for i in range(function.n_in())]
    outputs = [f"double *{function.name_out(i)}" for i in range(function.n_out())]
    return ", ".join(inputs + outputs)


def c_function(
    function: Any, name: str | None = None, qualifier: str = "static", symbols: Any = None
) -> str:
    """The C source of one function, ``void name(const double *q, ..., double *u, ...)``.

    Parameters
    ----------
    function : casadi.Function
        Of SX expressions, with dense inputs. Matrices are stored by rows, zeros included.
    name : str, optional
        Default: the name of the function.
    qualifier : str, optional
        The text before ``void``, of the function and of the parts that it is split into.
    symbols : casadi.Function, optional
        With it, a comment before each block of instructions names the symbol that it contributes
        to: an output of `function`, or one of `symbols` that `function` also computes. Inputs of
        the same name are the same.

    Returns
    -------
    str
        C99; needs ``math.h``. Inputs and outputs must not overlap.

    Raises
    ------
    InputError
        For an operation that has no counterpart in C99.
    """
    program = _gathered(_read(function))
    if symbols is not None:
        _mark(program, function, symbols)
    ins = [function.name_in(i) for i in range(function.n_in())]
    stage = _Stage(
        name or function.name(), 0, len(program.formats), ins, range(function.n_out()), False
    )
    return _sources(program, function, [stage], qualifier)[0]


@dataclass(frozen=True)
class Stages:
    """A C function in stages.

    Attributes
    ----------
    source : str
    size : int
        The number of values that the stages share.
    """

    source: str
    size: int


def c_stages(
    function: Any,
    stages: Sequence[tuple[str, Sequence[str]]],
    qualifier: str = "static",
    symbols: Any = None,
) -> Stages:
    """The C source of one function in stages, each a C function for some of its outputs.

    The first is ``void first(double *w, const double *q, ..., double *u, ...)``, the others ``void
    next(double *w, double *y, ...)``: they go on from the w that those before them filled. What
    several stages need is computed in the first of them.

    Parameters
    ----------
    function : casadi.Function
        As in `c_function`.
    stages : sequence of (str, sequence of str)
        Name and outputs of each.
    qualifier, symbols
        As in `c_function`.

    Returns
    -------
    Stages

    Raises
    ------
    InputError
        As `c_function`.
    """
    place = {function.name_out(i): i for i in range(function.n_out())}
    outputs = [[place[x] for x in names] for _, names in stages]
    program, ends = _staged(_gathered(_read(function)), outputs)
    if symbols is not None:
        _mark(program, function, symbols)
    ins = [function.name_in(i) for i in range(function.n_in())]
    table = [
        _Stage(name, first, last, [] if i else ins, outputs[i], True)
        for i, ((name, _), first, last) in enumerate(
            zip(stages, [0, *ends[:-1]], ends, strict=True)
        )
    ]
    sources, size = _sources(program, function, table, qualifier)
    return Stages(sources, size)


@dataclass(frozen=True)
class _Stage:
    """Values `first` to `last` of a program as a C function; `shared` if w is that of a caller."""

    name: str
    first: int
    last: int
    ins: Sequence[str]
    outs: Sequence[int]
    shared: bool


def _sources(
    program: _CProgram, function: Any, stages: Sequence[_Stage], qualifier: str
) -> tuple[str, int]:
    """The C of all stages, and the size of w."""
    starts = sorted({k for s in stages for k in _starts(program, s)})
    slot, size = _slots(program, starts)
    size = max(size, 1)
    at_value: dict[int, list[str]] = {}
    for o, e, value in program.outputs:
        at_value.setdefault(value, []).append(f"  {function.name_out(o)}[{e}] = {{}};")
    lines = list[str]()
    for s in stages:
        own = [k for k in starts if s.first <= k < max(s.last, s.first + 1)]
        outs = [function.name_out(o) for o in s.outs]
        arrays = [*(f"const double *{x}" for x in s.ins), *(f"double *{x}" for x in outs)]
        unused, zeros = [f"  (void){x};" for x in [*s.ins, *outs]], _zeros(program, function, s)
        with_w = ", ".join(["double *w", *arrays])
        head = f"{qualifier} void {s.name}({with_w if s.shared else ', '.join(arrays)}) {{"
        if len(own) == 1:
            body = _part(program, s.first, s.last, slot, at_value)
            taken = ["  (void)w;"] if s.shared else []
            lines += [head.lstrip(), *taken, *unused, *zeros, *body, "}", ""]
            continue
        calls = []
        for i, (start, end) in enumerate(pairwise([*own, s.last])):
            body = _part(program, start, end, slot, at_value)
            part = f"{s.name}_part{i}"
            lines += [
                f"{qualifier} void {part}({with_w}) {{".lstrip(), "  (void)w;", *unused, *body,
                "}", "",
            ]  # fmt: skip
            calls.append(f"  {part}({', '.join(['w', *s.ins, *outs])});")
        made = [] if s.shared else [f"  double w[{size}];"]
        lines += [head.lstrip(), *made, *zeros, *calls, "}", ""]
    return "\n".join(lines), size


def _starts(program: _CProgram, stage: _Stage) -> Iterator[int]:
    """Where the parts of a stage begin."""
    stores = Counter(value for _, _, value in program.outputs)
    yield stage.first
    lines = 0
    for k in range(stage.first, stage.last):
        own = 1 + stores[k] + (k in program.comments)
        if lines + own > PART and lines:
            yield k
            lines = 0
        lines += own


def _zeros(program: _CProgram, function: Any, stage: _Stage) -> list[str]:
    """Entries of outputs that are always zero: where they are many, all are set first."""
    found, lines = {(o, e) for o, e, _ in program.outputs}, list[str]()
    for o in stage.outs:
        name, n = function.name_out(o), function.numel_out(o)
        zeros = [e for e in range(n) if (o, e) not in found]
        if len(zeros) > MANY_ZEROS:
            lines.append(f"  for (int i = 0; i < {n}; i++) {name}[i] = 0.0;")
        else:
            lines += [f"  {name}[{e}] = 0.0;" for e in zeros]
    return lines


def _local(value: int) -> str:
    """The C variable of a value."""
    return f"x{value}"


def _lines(
    program: _CProgram, k: int, where: Callable[[int], str], at_value: dict[int, list[str]]
) -> list[str]:
    text = program.formats[k].format(*(where(i) for i in program.operands[k]))
    stores = [line.format(_local(k)) for line in at_value.get(k, [])]
    before = [f"  /* {program.comments[k]} */"] if k in program.comments else []
    return [*before, f"  const double x{k} = {text};", *stores]


def _part(
    program: _CProgram, start: int, stop: int, slot: dict[int, int], at_value: dict[int, list[str]]
) -> list[str]:
    """Values from other parts are loaded where they are needed, those for others stored."""

    def where(value: int) -> str:
        return _local(value) if value >= start else f"w[{slot[value]}]"

    lines = []
    for k in range(start, stop):
        lines += _lines(program, k, where, at_value)
        if k in slot:
            lines.append(f"  w[{slot[k]}] = x{k};")
    return lines


def _slots(program: _CProgram, starts: Sequence[int]) -> tuple[dict[int, int], int]:
    """Places in the array for values that other parts need; reused when no part needs them."""

    def part(value: int) -> int:
        return bisect_right(starts, value)

    last: dict[int, int] = {}
    for k, operands in enumerate(program.operands):
        for i in operands:
            if part(i) != part(k):
                last[i] = part(k)
    slot: dict[int, int] = {}
    free: list[int] = []
    size, ends = 0, sorted((at, value) for value, at in last.items())
    done = 0
    for value in sorted(last):
        while done < len(ends) and ends[done][0] < part(value):
            free.append(slot[ends[done][1]])
            done += 1
        if free:
            slot[value] = free.pop()
        else:
            slot[value], size = size, size + 1
    return slot, size


def _read(function: Any) -> _CProgram:
    """The instructions by value; what no output needs is left out."""
    ca = casadi_module()
    names = {
        getattr(ca, attribute): attribute.removeprefix("OP_")
        for attribute in dir(ca)
        if attribute.startswith("OP_")
    }
    position = [_by_rows(function.sparsity_out(i)) for i in range(function.n_out())]
    program = _CProgram()
    known = program.known
    held: dict[int, int] = {}  # place in CasADi's work vector to value
    for k in range(function.n_instructions()):
        op = names[function.instruction_id(k)]
        inputs, outputs = function.instruction_input(k), function.instruction_output(k)
        if op == "OUTPUT":
            o, nonzero = outputs
            program.outputs.append((o, position[o][nonzero], held[inputs[0]]))
            continue
        operands: tuple[int, ...] = ()
        if op == "CONST":
            text = _number(function.instruction_constant(k))
        elif op == "INPUT":
            text = f"{function.name_in(inputs[0])}[{inputs[1]}]"
        elif op in _FORMATS:
            text = _FORMATS[op]
            operands = tuple(held[i] for i in inputs)
            if op == "ASSIGN":
                held[outputs[0]] = operands[0]
                continue
        else:
            raise InputError(f"{function.name()}: the operation {op} has no counterpart in C")
        key = (text, tuple(sorted(operands)) if op in _COMMUTE else operands)
        if key not in known:
            known[key] = len(program.formats)
            program.formats.append(text)
            program.operands.append(operands)
        held[outputs[0]] = known[key]
    return program


def _gathered(program: _CProgram) -> _CProgram:
    """The same with slow steps of a sort together, as soon as all that they need is there.

    Those that need others of them follow in the next group.
    """
    count = len(program.formats)
    depth = [0] * count  # how many groups there are up to a value
    groups: dict[int, list[int]] = {}
    for k, operands in enumerate(program.operands):
        depth[k] = max((depth[i] for i in operands), default=0)
        if program.formats[k] in _GATHERED:
            depth[k] += 1
            groups.setdefault(depth[k], []).append(k)
    order: dict[int, None] = {}  # old values, as they are to stand
    for _, group in sorted(groups.items()):
        needed, open_ = set[int](), [i for k in group for i in program.operands[k]]
        while open_:
            i = open_.pop()
            if i not in order and i not in needed:
                needed.add(i)
                open_ += program.operands[i]
        order |= dict.fromkeys(sorted(needed))
        order |= dict.fromkeys(k for text in _GATHERED for k in group if program.formats[k] == text)
    order |= dict.fromkeys(range(count))
    return _reordered(program, order)


def _reordered(program: _CProgram, order: Iterable[int]) -> _CProgram:
    """The program with its values in this order, each after its operands."""
    old_values = list(order)
    new = {old: k for k, old in enumerate(old_values)}
    found = _CProgram(outputs=[(o, entry, new[k]) for o, entry, k in program.outputs])
    for old in old_values:
        text, operands = program.formats[old], tuple(new[i] for i in program.operands[old])
        found.formats.append(text)
        found.operands.append(operands)
        found.known[text, tuple(sorted(operands)) if text in _COMMUTING else operands] = new[old]
    return found


def _staged(program: _CProgram, stages: Sequence[Sequence[int]]) -> tuple[_CProgram, list[int]]:
    """The same with its values in the order of stages, and where each stage ends."""
    of_output = {o: s for s, outputs in enumerate(stages) for o in outputs}
    count, last = len(program.formats), len(stages)
    stage = [last] * count  # the first that needs a value
    for o, _, k in program.outputs:
        stage[k] = min(stage[k], of_output[o])
    for k in reversed(range(count)):
        if not program.operands[k] and "[" in program.formats[k]:
            stage[k] = 0  # the inputs are given to the first
        for i in program.operands[k]:
            stage[i] = min(stage[i], stage[k])
    copies: dict[tuple[int, int], int] = {}  # of what is an output of a later stage, there
    for n, (o, entry, k) in enumerate(program.outputs):
        s = of_output[o]
        if stage[k] < s:
            if (k, s) not in copies:
                copies[k, s] = len(program.formats)
                program.formats.append(_FORMATS["ASSIGN"])
                program.operands.append((k,))
                stage.append(s)
            program.outputs[n] = (o, entry, copies[k, s])
    order = sorted((k for k, s in enumerate(stage) if s < last), key=lambda k: stage[k])
    ends = [sum(s <= i for s in stage) for i in range(last)]
    return _reordered(program, order), ends


def _mark(program: _CProgram, function: Any, symbols: Any) -> None:
    """A comment wherever the instructions turn to another symbol."""
    named: dict[int, tuple[str, str]] = {}  # value to symbol, and entry of it
    found = _read(symbols)
    here: dict[int, int] = {}  # value of `symbols` to the same one of `program`
    for value, (text, operands) in enumerate(found.known):
        key = (text, tuple(here.get(i, -1) for i in operands))
        if text in _COMMUTING:
            key = (text, tuple(sorted(key[1])))
        if key in program.known:
            here[value] = program.known[key]
    for f, outputs in ((function, program.outputs), (symbols, found.outputs)):
        for o, entry, value in outputs:
            at = value if f is function else here.get(value)
            if at is not None and program.operands[at]:  # constants and inputs are no result
                place = divmod(entry, f.size2_out(o)) if f.size2_out(o) > 1 else (entry,)
                label = f"{f.name_out(o)}[{', '.join(map(str, place))}]"
                named.setdefault(at, (f.name_out(o), label))
    count = len(program.formats)
    toward = [-1] * count  # the first named value that needs it
    for k in reversed(range(count)):
        toward[k] = k if k in named else toward[k]
        for i in program.operands[k]:
            toward[i] = toward[k]
    start, symbol, ready = 0, "", list[str]()
    for k in range(count):
        goal = named.get(toward[k], (symbol, ""))[0]
        if goal != symbol:
            start, symbol, ready = k, goal, []
            program.comments[start] = f"for {symbol}"
        if k in named:
            ready.append(named[k][1])
            program.comments[start] = textwrap.shorten(", ".join(ready), 80, placeholder=" ...")


def _by_rows(sparsity: Any) -> list[int]:
    """The index of each stored entry in a dense matrix, row by row."""
    rows, columns = sparsity.get_triplet()
    return [i * sparsity.size2() + j for i, j in zip(rows, columns, strict=True)]


def _number(x: float) -> str:
    if math.isnan(x):
        return "(double)NAN"  # the macros are floats
    if math.isinf(x):
        return "(double)INFINITY" if x > 0.0 else "-(double)INFINITY"
    return f"({x!r})" if x < 0.0 else repr(float(x))
