"""The self-test of an exported library: a program that knows states and their torques."""

from __future__ import annotations

from holoctl.codegen.c_text import array, filled, number
from holoctl.codegen.exported.contexts import SelfTest, SensedTest, Shared
from holoctl.codegen.exported.laws import Laws
from holoctl.codegen.exported.limits import limit_checks, resting
from holoctl.codegen.exported.states import States
from holoctl.codegen.exported.ticks import Ticks
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.task import NAMES
from holoctl.codegen.laws.task_rows import reference_pose

__all__ = ["self_test"]


def self_test(
    E: Expressions, laws: Laws, states: States, shared: Shared, ticks: Ticks | None
) -> str:
    """The text of the program."""
    P, U, controller, timed = shared.P, shared.U, laws.controlled, laws.timed
    inputs = (_references(laws) or ("q_ref", "v_ref", "a_ref")) if controller else ("target",)
    sizes = _sizes(laws)
    first, *others = (f"x->{x}" for x in ("first", *inputs[1:]))
    function = "torque" if controller else "inverse_dynamics"
    given = ", ".join(["x->q", "x->v", first, *others, *(["x->t"] if timed else [])])
    arrays = [
        array("state_q", states.q, "[STATES][NQ]"),
        array("state_v", states.v, "[STATES][NV]"),
        array("state_t", states.t, "[STATES]"),
        array("target", states.target, "[STATES][NU]"),
        array("expected_inverse", states.inverse, "[STATES][NU]"),
        array("tolerance", states.tolerance, "[STATES]"),
        array("resting", resting(laws, E.mech.nu), "[NU]"),
    ]
    limit_arrays, or_beyond = limit_checks(laws)
    arrays += [limit_arrays] if limit_arrays else []
    more_inputs, more_bad, golden_torque = "", "", ""
    copies = "  for (int i = 0; i < NU; i++) x.first[i] = target[k][i];\n"
    if controller:
        columns = states.q_ref, states.v_ref, states.a_ref
        arrays += [
            array(f"given_{x}", rows, f"[STATES][{size}]")
            for x, rows, size in zip(inputs, columns, sizes, strict=True)
        ]
        arrays.append(array("expected_torque", states.torque, "[STATES][NU]"))
        copies = "".join(
            f"  for (int i = 0; i < {size}; i++) x.{to}[i] = given_{x}[k][i];\n"
            for to, x, size in zip(("first", *inputs[1:]), inputs, sizes, strict=True)
        )
        more = list(zip(inputs, sizes, strict=True))[1:]
        more_inputs = "".join(f", {x}[{size}]" for x, size in more)
        more_bad = "".join(f"  bad_numbers(x.{x}, {size}, &x);\n" for x, size in more)
        golden_torque = (
            '    check(good(tick(&c, &x, u)), "status");\n'
            "    d = difference(u, expected_torque[k]) / tolerance[k];\n"
            "    if (!(d <= worst)) worst = d;\n"
        )
    if timed:
        more_bad += "  bad_numbers(&x.t, 1, &x);\n"
    seen = f'  check(c.count[{U}_OVERFLOW] > 0, "OVERFLOW in a storm");\n'
    limited_seen = f'  check(c.count[{U}_LIMITED] > 0, "LIMITED");\n'
    test = SelfTest(
        arrays="\n".join(arrays),
        first=sizes[0],
        more_inputs=more_inputs,
        copies=copies,
        tick=f"{P}_{function}(c, {given}, u)",
        x_t="x.t, " if timed else "",
        golden_torque=golden_torque,
        more_bad=more_bad,
        more_refused=_refused(E, laws, states, shared),
        storm_seen=seen if states.overflow else "",
        sensed="" if ticks is None else _sensed(laws, ticks, shared),
        sensed_call="" if ticks is None else "  sensed();\n",
        or_beyond=or_beyond,
        limited_seen=limited_seen if states.limited else "",
    )
    return filled("test.c", shared, test)


def _references(laws: Laws) -> tuple[str, ...]:
    """What a law of tasks follows; none without."""
    return () if laws.task is None else NAMES


def _sizes(laws: Laws) -> tuple[int, ...] | tuple[str, ...]:
    """Of what is given besides the state."""
    if laws.task is None:
        return ("NU", "NU", "NU") if laws.controlled else ("NU",)
    return tuple(laws.task.function.numel_in(i) for i in (2, 3, 4))


def _sensed(laws: Laws, ticks: Ticks, shared: Shared) -> str:
    """The test of the closed state from what is measured."""
    timed, controlled = laws.timed, laws.controlled
    numbers, rates = ticks.measured_q.shape[1], ticks.measured_v.shape[1]
    arrays = [
        array("measured_q", ticks.measured_q, "[TICKS][NUMBERS]"),
        array("measured_v", ticks.measured_v, "[TICKS][RATES]"),
        array("closed_q", ticks.q, "[TICKS][NQ]"),
        array("closed_v", ticks.v, "[TICKS][NV]"),
        array("start_q", ticks.start, "[NQ]"),
    ]
    if timed:
        arrays.append(array("measured_t", ticks.t, "[TICKS]"))
    names = _references(laws) or ("q_ref", "v_ref", "a_ref")
    follow = ", ".join(f"given_{x}[k % STATES]" for x in names)
    storm = (
        f"    {{\n      double u[NU];\n"
        f"      {shared.P}_torque_from_motors(&c, q_m, v_m, {follow}, "
        f"{'measured_t[end], ' if timed else ''}u);\n"
        '      check(finite_u(u), "u is finite in a storm of what is measured");\n    }\n'
    )
    context = SensedTest(
        numbers, rates, len(ticks.t), "\n".join(arrays),
        "" if timed else "  (void)k;\n", "measured_t[k], " if timed else "",
        ", 0.0" if timed else "", storm if controlled else "",
    )  # fmt: skip
    return filled("sensed_test.c", shared, context)


def _refused(E: Expressions, laws: Laws, states: States, shared: Shared) -> str:
    """Checks of the self-test that not every mechanism has."""
    U, lines = shared.U, list[str]()
    if E.tree.unit_parts:
        place = E.tree.unit_parts[0][0]
        lines += [
            "  x = good_input(0);",
            f"  x.q[{place}] += 2.0;",
            f'  check(tick(&c, &x, u) == {U}_NOT_NORMALISED && finite_u(u), "NOT_NORMALISED");',
        ]
    if laws.controller is not None:
        lines += [
            "  x = good_input(0);",
            "  start(&c);",
            "  c.kp[0] = HUGE_VAL;",
            f'  check(tick(&c, &x, u) == {U}_OVERFLOW && finite_u(u), "OVERFLOW");',
        ]
    along, turns = ((), False) if laws.task is None else reference_pose(laws.task.subject.task)
    if turns:
        lines += [
            "  x = good_input(0);",
            "  start(&c);",
            f"  x.first[{len(along) + 1}] += 1e-3;",
            f'  check(tick(&c, &x, u) == {U}_NOT_NORMALISED && finite_u(u), "no rotation");',
        ]
    if states.open is not None:
        numbers = ", ".join(number(float(x)) for x in states.open)
        lines += [
            "  {",
            f"    static const double open_q[NQ] = {{{numbers}}};",
            "    x = good_input(0);",
            "    for (int i = 0; i < NQ; i++) x.q[i] = open_q[i];",
            "    start(&c);",
            f'    check(tick(&c, &x, u) == {U}_OPEN && finite_u(u), "OPEN");',
            f'    check(c.closure > {shared.closure_limit}, "closure of an open state");',
            "  }",
        ]
    if states.sliding is not None:
        numbers = ", ".join(number(float(x)) for x in states.sliding)
        lines += [
            "  {",
            f"    static const double sliding_v[NV] = {{{numbers}}};",
            "    x = good_input(0);",
            "    for (int i = 0; i < NV; i++) x.v[i] = sliding_v[i];",
            "    start(&c);",
            f'    check(tick(&c, &x, u) == {U}_SLIDING && finite_u(u), "SLIDING");',
            f'    check(c.velocity > {shared.velocity_limit}, "velocity of a sliding state");',
            "  }",
        ]
    return "".join(f"{line}\n" for line in lines)
