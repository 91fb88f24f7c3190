"""The self-test of an exported library: a program that knows states and their torques."""

from __future__ import annotations

from holoctl.codegen.c_text import array, filled, number
from holoctl.codegen.exported.contexts import SelfTest, SensedTest, Shared
from holoctl.codegen.exported.laws import Laws
from holoctl.codegen.exported.limits import limit_checks, resting
from holoctl.codegen.exported.states import States
from holoctl.codegen.exported.ticks import Ticks
from holoctl.codegen.expressions import Expressions

__all__ = ["self_test"]


def self_test(
    E: Expressions, laws: Laws, states: States, shared: Shared, ticks: Ticks | None
) -> str:
    """The text of the program."""
    P, U, controller, timed = shared.P, shared.U, laws.controller is not None, laws.timed
    inputs = ("q_ref", "v_ref", "a_ref") if controller else ("target",)
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
        arrays += [array(x, getattr(states, x), "[STATES][NU]") for x in inputs]
        arrays.append(array("expected_torque", states.torque, "[STATES][NU]"))
        copies = (
            "  for (int i = 0; i < NU; i++) {\n    x.first[i] = q_ref[k][i];\n"
            "    x.v_ref[i] = v_ref[k][i];\n    x.a_ref[i] = a_ref[k][i];\n  }\n"
        )
        more_inputs = ", v_ref[NU], a_ref[NU]"
        more_bad = "  bad_numbers(x.v_ref, NU, &x);\n  bad_numbers(x.a_ref, NU, &x);\n"
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


def _sensed(laws: Laws, ticks: Ticks, shared: Shared) -> str:
    """The test of the closed state from what is measured."""
    timed, controlled = laws.timed, laws.controller is not None
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
    storm = (
        f"    {{\n      double u[NU], rest[NU] = {{0.0}};\n"
        f"      {shared.P}_torque_from_motors(&c, q_m, v_m, rest, rest, rest, "
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
    P, U, lines = shared.P, shared.U, list[str]()
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
            f"  {P}_init(&c);",
            "  c.kp[0] = HUGE_VAL;",
            f'  check(tick(&c, &x, u) == {U}_OVERFLOW && finite_u(u), "OVERFLOW");',
        ]
    if states.open is not None:
        numbers = ", ".join(number(float(x)) for x in states.open)
        lines += [
            "  {",
            f"    static const double open_q[NQ] = {{{numbers}}};",
            "    x = good_input(0);",
            "    for (int i = 0; i < NQ; i++) x.q[i] = open_q[i];",
            f"    {P}_init(&c);",
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
            f"    {P}_init(&c);",
            f'    check(tick(&c, &x, u) == {U}_SLIDING && finite_u(u), "SLIDING");',
            f'    check(c.velocity > {shared.velocity_limit}, "velocity of a sliding state");',
            "  }",
        ]
    return "".join(f"{line}\n" for line in lines)
