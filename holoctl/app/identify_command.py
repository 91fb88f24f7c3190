"""``holoctl identify``: masses and friction of a robot from a log of its motion."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holoctl.app.printing import answer
from holoctl.app.robot_arguments import (
    FLAG,
    FORMATS,
    PICTURES,
    names_of,
    numbers_of,
    out_files,
    robot_command,
    robot_held,
    typed_number,
)
from holoctl.base.checks import counted, listing
from holoctl.base.errors import HoloctlError, InputError
from holoctl.base.progress import progress_bar
from holoctl.closing.assembly import assemble
from holoctl.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from holoctl.identification.base_parameters import BaseParameters
    from holoctl.identification.fit import Fit
    from holoctl.identification.measurements import Measurements
    from holoctl.identification.regression import Regression

__all__ = ["add_identify"]

log = logging.getLogger(__name__)

BAD = 0.3
"""A relative error above this is told by a warning."""

WORDS = {
    "m": "mass", "mx": "m x", "my": "m y", "mz": "m z", "viscous": "viscous friction",
    "coulomb": "Coulomb friction", "stribeck": "friction at the start", "rotor": "rotor inertia",
    "offset": "offset",
}  # fmt: skip
"""Ends of names of parameters in words; others are quoted."""


def add_identify(commands: Any) -> None:
    """Add it to the subcommands of a parser."""
    robot_command(
        commands, "identify", _identify,
        "masses, inertias and friction from a log of a motion",
        "Find the dynamic parameters that fit measured efforts, physically consistent and near "
        "those of the robot file. Columns of the log: t (s), JOINT.q (rad or m) of the measured "
        "joints, MOTOR.u (N m or N), and JOINT.v if rates are measured. The branch is that of the "
        "reference; --set changes it.",
        "holoctl identify log.csv robot.urdf --friction motors --test other.csv --save new.yaml",
        [("--friction", "the joints with unknown friction (default: none)",
          {"choices": ["joints", "motors", "model"]}),
         ("--rotors", "rotor inertias are unknown too", FLAG),
         ("--offsets", "constant errors of the measured efforts are unknown too", FLAG),
         ("--measured", "the measured joints, separated by commas (default: all that have a column "
          "JOINT.q)", {"metavar": "NAMES"}),
         ("--columns", "the log's name of a column, as hip.q=enc_1; may be repeated",
          {"metavar": "NAME=COLUMN", "action": "append", "default": []}),
         ("--gain", "factor of the efforts, N m/A for currents; one number, or one for each motor, "
          "separated by commas", {"metavar": "GAIN"}),
         ("--cutoff", "of the filter, Hz: above the motion, below vibrations (%(default)g)",
          {"type": typed_number, "default": 10.0, "metavar": "HZ"}),
         ("--lag", "the time by which efforts are recorded later than positions, s (default: "
          "estimated)", {"type": typed_number, "metavar": "SECONDS"}),
         ("--period", "of a motion that repeats, s; it is fitted then, not filtered",
          {"type": typed_number, "metavar": "SECONDS"}),
         ("--test", "a log of another motion, on which the fit is tested", {"metavar": "LOG"}),
         ("--save", "write the identified robot as this YAML file and a URDF of the same name "
          "(existing files are not overwritten)", {"type": Path, "metavar": "YAML"}),
         *out_files({
             ".json": "all numbers", ".csv": "the parameters, before and after",
             ".html": "a page with the report and the picture",
             PICTURES: "bodies before and after, efforts and residuals",
         })], FORMATS,
        before=[("log", "the measurements: .csv, .parquet or .npz", {"metavar": "LOG"})],
    )  # fmt: skip


@dataclass(frozen=True)
class _Identified:
    """A fit, what it is made from, and what was noticed."""

    fit: Fit
    data: Regression
    test: Regression | None
    base: BaseParameters
    findings: tuple[str, ...]
    saved: tuple[Path, ...] = ()

    @property
    def judged(self) -> Regression:
        """The equations on which the fit is judged."""
        return self.data if self.test is None else self.test

    def errors(self) -> dict[str, tuple[float, float]]:
        """Relative errors of each label with the prior and with the fit."""
        before = replace(self.fit, p=self.fit.prior).errors(self.judged)
        after = self.fit.errors(self.judged)
        return {name: (before[name], x) for name, x in after.items()}


def _identify(given: argparse.Namespace) -> int:
    from holoctl.identification.base_parameters import base_parameters
    from holoctl.identification.diagnosis import measurement_diagnosis
    from holoctl.identification.fit import identify
    from holoctl.identification.parameters import Parameters
    from holoctl.identification.regression import regression

    mech, q = robot_held(given)
    start = assemble(mech, q)[0]
    _check_new(given.save)
    model = Parameters(
        mech, friction=given.friction, rotors=given.rotors, offsets=given.offsets
    )  # fmt: skip
    options: dict[str, Any] = {"cutoff": given.cutoff, "start": start}
    if given.lag is not None:
        options["lag"] = given.lag
    if given.period is not None:
        options |= {"method": "periodic", "period": given.period}
    logs = [_measured(given, path, mech) for path in (given.log, given.test) if path is not None]
    with progress_bar(len(logs) + 2, "identify", "step", show=sys.stderr.isatty()) as bar:
        equations = []
        for one in logs:
            equations.append(regression(model, one, **options))
            bar.update(1)
        data, *tests = equations
        base = base_parameters(model, data.q[0])
        findings = measurement_diagnosis(data, base).findings
        bar.update(1)
        try:
            fit = identify(data, mech)
        except HoloctlError:
            for text in findings:
                log.warning("%s: %s", given.log, text)
            raise
        bar.update(1)
    found = _Identified(fit, data, tests[0] if tests else None, base, findings)
    for name, (_, error) in found.errors().items():
        if error > BAD:
            log.warning(
                "the fit misses the efforts of %r by %.0f %%: see diagnosis and residuals",
                name, 100.0 * error,
            )  # fmt: skip
    if given.save is not None:
        found = replace(found, saved=fit.save(given.save))
    answer(given, found, _numbers, _table, _show, _draw, _page)
    return 0


def _check_new(path: Path | None) -> None:
    """Raise `InputError` for files of ``--save`` that exist, before the work."""
    if path is None:
        return
    if path.suffix not in (".yaml", ".yml"):
        raise InputError(f"--save takes a file that ends with .yaml; got {str(path)!r}")
    for file in (path, path.with_suffix(".urdf")):
        if file.exists():
            raise InputError(f"--save: {file} exists and is not overwritten; give another name")


def _measured(given: argparse.Namespace, path: str, mech: Mechanism) -> Measurements:
    """The measurements in a file."""
    from holoctl.identification.measurements import Measurements

    columns = dict[str, str]()
    for text in given.columns:
        name, equals, column = (x.strip() for x in text.partition("="))
        if not (name and equals and column):
            raise InputError(f"--columns takes NAME=COLUMN, as hip.q=enc_1; got {text!r}")
        if name in columns:
            raise InputError(f"--columns: {name!r} is given twice")
        columns[name] = column
    gain: Any = None
    if given.gain is not None:
        numbers, motors = numbers_of(given.gain, "--gain"), mech.actuator_names
        if len(numbers) not in (1, len(motors)):
            raise InputError(
                f"--gain takes one number, or one for each of {listing(motors)}; got {len(numbers)}"
            )
        gain = numbers[0] if len(numbers) == 1 else dict(zip(motors, numbers, strict=True))
    found = Measurements.load(path, names_of(given.measured), columns=columns, gain=gain)
    strange = [x for x in found.measured if x not in mech.coordinate_names + mech.constraint_names]
    if strange and given.measured is None:
        raise InputError(
            f"{path}: {mech.name} has no joint {listing(strange)}, of which the log has positions; "
            "--measured names those to use, --columns what other columns are"
        )
    return found


# --------------------------------------------------------------------------------------- report


def _sections(found: _Identified) -> list[tuple[str, str]]:
    """The report: titles and texts."""
    from holoctl.identification.diagnosis import residual_diagnosis

    fit, data = found.fit, found.data
    whole, many = found.base, len(fit.p)
    notes = [f"{counted(data.t.size, 'sample')} of {counted(len(data.labels), 'row')}, two for "
             f"each period of the cutoff, {0.5 * data.rate:g} Hz", *data.notes]  # fmt: skip
    rank = [
        f"motions can tell apart {whole.rank} of {counted(many, 'parameter')}{_undecided(whole)}",
        f"this log tells apart {fit.base.rank}{_undecided(fit.base)}",
    ]
    noise = [
        f"{name}: {s:.3g}, {s / max(float(np.sqrt(np.mean(y**2))), 1e-300):.2%} of the efforts"
        for (name, s), y in zip(fit.sigma.items(), data.y.T, strict=True)
    ]
    wide = max(map(len, data.labels))
    errors = [f"{'':{wide}} {'prior':>9} {'fit':>9}", *(
        f"{name:{wide}} {a:9.2%} {b:9.2%}" for name, (a, b) in found.errors().items()
    )]  # fmt: skip
    on = (
        "the log of the fit itself (--test takes another)" if found.test is None else "the test log"
    )
    left = residual_diagnosis(found.judged, fit.p).findings
    sections = [
        ("log", notes),
        ("diagnosis", found.findings or ["nothing wrong was found"]),
        ("rank", rank),
        ("noise (standard deviation, N m or N)", noise),
        ("strength of the prior", [_strength(fit)]),
        (f"errors on {on}", errors),
        ("residuals", left or ["they follow no motion"]),
        ("parameters", _before_and_after(fit)),
        ("what the log does not tell apart", untold(fit.base)),
    ]
    return [(title, "\n".join(f"  {line}" for line in lines)) for title, lines in sections]


def _before_and_after(fit: Fit) -> list[str]:
    """The parameters that the log has an influence of, in the prior and the fit; active bounds."""
    names = [x for x in fit.model.names if x not in fit.base.unseen]
    wide, prior = max(map(len, names)), dict(zip(fit.model.names, fit.prior, strict=True))
    lines = [f"{'':{wide}} {'prior':>11} {'fit':>11}", *(
        f"{x:{wide}} {prior[x].round(12) + 0.0:11.4g} {round(fit.values[x], 12) + 0.0:11.4g}"
        for x in names
    )]  # fmt: skip
    return lines + [f"active bounds: {', '.join(fit.active)}"] * bool(fit.active)


def _undecided(base: BaseParameters) -> str:
    return "" if base.decided else f" (undecided: the gap of singular values is {base.gap:.2g})"


def _strength(fit: Fit) -> str:
    size = f"{fit.strength:.3g}: relative errors of {fit.strength**-0.5:.2g}"
    if not fit.folds:
        return size
    left = float(np.sqrt(np.mean(np.square(fit.folds[fit.strength]))))
    return f"{size}; blocks of time that were left out are predicted to {left:.3g} times the noise"


def untold(base: BaseParameters) -> list[str]:
    """What the equations do not tell apart, in sentences."""
    found = [f"{in_words(base.unseen)}: no influence"] if base.unseen else []
    groups = dict[tuple[str, ...], list[str]]()
    for j, name in enumerate(base.model.names):
        rows = np.flatnonzero(base.matrix[:, j])
        if name not in base.independent and rows.size:
            groups.setdefault(tuple(base.independent[i] for i in rows), []).append(name)
    found += [
        f"{in_words(those)}: only together with {in_words(others)}"
        for others, those in groups.items()
    ]
    alone = set(base.independent)
    found += [f"as one number: {x}" for x in base.expressions if x not in alone]
    return found or ["it tells all parameters apart"]


def in_words(names: Sequence[str]) -> str:
    """Parameters in words: "mass, Iyy of proximal_left; viscous friction of motor_left"."""
    of = dict[str, list[str]]()
    for name in names:
        body, _, what = name.rpartition(".")
        of.setdefault(body, []).append(WORDS.get(what, what))
    return "; ".join(
        ", ".join(those) + (f" of {body}" if body else "") for body, those in of.items()
    )


def _show(found: _Identified) -> None:
    print(f"{found.fit.model.mech.name}: {repr(found.data.measurements)[15:-1]}")
    for title, text in _sections(found):
        print(f"\n{title}\n{text}")
    for path in found.saved:
        print(f"written: {path}")


def _draw(found: _Identified) -> Any:
    from holoctl.app.identification_plot import plot_fit

    return plot_fit(found.fit, found.judged)


def _page(found: _Identified) -> str:
    """The report and its picture as one HTML file that needs nothing else."""
    picture = StringIO()
    _draw(found).savefig(picture, format="svg")
    drawn = picture.getvalue()
    name = escape(found.fit.model.mech.name)
    parts = "".join(
        f"<h2>{escape(title)}</h2>\n<pre>{escape(text)}</pre>\n" for title, text in _sections(found)
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>\n'
        "<style>body {font-family: sans-serif; margin: 2em auto; max-width: 80em}\n"
        "pre {white-space: pre-wrap} svg {max-width: 100%; height: auto}</style></head>\n"
        f"<body>\n<h1>{name}: identified parameters</h1>\n{drawn[drawn.index('<svg') :]}\n"
        f"{parts}</body></html>\n"
    )


def _table(found: _Identified) -> tuple[list[str], list[list[Any]]]:
    fit = found.fit
    rows = zip(fit.model.names, fit.prior.tolist(), fit.p.tolist(), strict=True)
    return ["parameter", "prior", "fit"], [list(row) for row in rows]


def _numbers(found: _Identified) -> dict[str, Any]:
    from holoctl.identification.diagnosis import residual_diagnosis

    fit, data, base = found.fit, found.data, found.fit.base
    _, rows = _table(found)
    return {
        "name": fit.model.mech.name,
        "samples": data.t.size,
        "cutoff": 0.5 * data.rate,
        "lag": data.lag,
        "notes": data.notes,
        "findings": found.findings,
        "rank": {
            "parameters": len(fit.p), "of_motions": found.base.rank, "of_log": base.rank,
            "gap": base.gap, "decided": base.decided and found.base.decided,
        },
        "noise": fit.sigma,
        "strength": fit.strength,
        "folds": {f"{strength:g}": x for strength, x in fit.folds.items()},
        "tested_on": "log" if found.test is None else "test",
        "errors": {x: {"prior": a, "fit": b} for x, (a, b) in found.errors().items()},
        "residuals": residual_diagnosis(found.judged, fit.p).findings,
        "active": fit.active,
        "parameters": {name: {"prior": a, "fit": b} for name, a, b in rows},
        "base_parameters": [
            {"expression": x, "prior": a, "fit": b, "interval": both}
            for x, a, b, both in zip(
                base.expressions, base.of(fit.prior), base.of(fit.p), fit.intervals, strict=True
            )
        ],
        "without_influence": base.unseen,
        "least_eigenvalues": fit.least_eigenvalues,
        "written": [str(path) for path in found.saved],
    }  # fmt: skip
