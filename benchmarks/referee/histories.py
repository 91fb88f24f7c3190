"""Published histories of the rigid spatial slider-crank, which do not agree, beside our runs.

Six files were given to the IFToMM library of benchmark problems and stood in Exudyn's repository.
None of their numbers is kept here: `compared(folder)` reads them where they are, and what is
stored, in docs/referee-histories.json, are distances: of each from holoctl's run with three
readings of the data, and of each from each. What is compared is the position of the slider, m.
"""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

import holoctl as hc
from referee.problem import ATOL, RTOL
from referee.slider_cranks import (
    AS_FILES,
    SPATIAL_RATE,
    SPATIAL_TIMES,
    Reading,
    make_spatial,
    spatial,
)

Array = NDArray[np.float64]
PUBLISHED = (
    "github.com/jgerstmayr/EXUDYN, folder docs/verification/Slidercrank3DiftommBenchmark, read at "
    "commit 657f9c6 (the repository of August 2026 no longer has it)"
)
RIGID, WITH_SPACES = (
    "Spatial_rigid_slider-crank_mechanism_", "Spatial rigid slider-crank_mechanism_",
)  # fmt: skip
FILES = {
    "Gonzalez": f"{RIGID}Gonzalez.txt",
    "Masarati": f"{RIGID}Masarati.txt",
    "Masoudi": f"{RIGID}Masoudi.txt",
    "Zhou": f"{WITH_SPACES}PingZhou.txt",
    "Bushan": f"{WITH_SPACES}KarthikBushan.txt",
    "Chaojie": f"{RIGID}Chaojie.txt",
}
"""Rows of numbers, by commas or tabs: s, the slider, m; Masarati's third: the crank, rad."""
OFFSET = {"Chaojie": 0.015}
"""m: where a history starts beyond the 0.2 m of the geometry, another point of the slider."""
SOON = 1.0
"""The first second, s."""
VISIBLE = 1e-3
"""Two histories differ from where their distance is more than this, m."""
ENERGY_OF, ENERGY_AT = "Masarati", (0.68, 4.728)
"""Whose energy is told, and at what instants, s; the rate is that of a quartic by five rows."""
READINGS = {
    "a": AS_FILES,
    "b": Reading(rod=(4e-3, 4e-3, 4e-4)),
    "c": Reading(crank_com=0.0, upright=True),
}
MEANING = {
    "a": "the rod has 4e-4 kg m^2 along itself and 4e-3 across, the crank's centre of mass is in "
    "its middle, as in Exudyn's file; the joint at the slider has one axis along the guide and the "
    "other in the rod, as in MBDyn's",
    "b": "the small moment of inertia is across the rod: 4e-3 along it and about the axis of the "
    "joint that is fixed in it, 4e-4 square to both",
    "c": "the crank's centre of mass is on its axis, as MBDyn's file has it today; the joint at "
    "the slider has one axis along y",
}
WHY = {
    "Gonzalez": "a",
    "Masarati": "a, by MBDyn; it loses energy",
    "Masoudi": "b",
    "Bushan": "not known; nearest to c",
    "Chaojie": "not known; nearest to c; 0.015 m taken off, since it starts at 0.215 m",
    "Zhou": "not known",
}


@dataclass(frozen=True)
class History:
    """A published history: largest distances from holoctl's runs, m.

    Attributes
    ----------
    name : str
        Who gave it.
    rows : int
        Instants that are compared: the rows of the file.
    soon, whole : dict of str to float
        Reading to the largest distance in the first second, and of all.
    """

    name: str
    rows: int
    soon: dict[str, float]
    whole: dict[str, float]


@dataclass(frozen=True)
class Pair:
    """Two histories: the largest distance, m, and the first instant at which it shows, s."""

    one: str
    other: str
    distance: float
    first: float | None


@dataclass(frozen=True)
class Compared:
    """What was measured of them.

    Attributes
    ----------
    date : str
        When.
    histories : tuple of History
        By the reading that they are nearest to, then by their distance from it.
    pairs : tuple of Pair
        All.
    lost : tuple of (float, float)
        Instants, s, and the part of its energy that Masarati's has lost there, by reading a.
    from_theory : float
        Largest distance of holoctl's runs from the motion of one freedom, m.
    note : str
        What is to be known of the files that were read.
    """

    date: str
    histories: tuple[History, ...]
    pairs: tuple[Pair, ...]
    lost: tuple[tuple[float, float], ...]
    from_theory: float
    note: str = ""


# ----------------------------------------------------------------------------------- the files


def read(folder: Path) -> dict[str, Array]:
    """The rows of each file, as they are; ValueError, FileNotFoundError where they are not."""
    missing = [file for file in FILES.values() if not (folder / file).is_file()]
    if missing:
        raise FileNotFoundError(
            f"{folder} has no {missing}; published in {PUBLISHED}; the page says more"
        )
    return {name: rows(folder / file) for name, file in FILES.items()}


def rows(file: Path) -> Array:
    """Of a file: (n, 2) or more columns, with the instants in order."""
    lines = file.read_text(encoding="utf-8").replace(",", " ").splitlines()
    found = np.loadtxt(lines, ndmin=2)
    if found.shape[1] < 2 or len(found) < 5:
        raise ValueError(f"{file}: rows of instant and slider are expected, got {found.shape}")
    if not np.isfinite(found[:, :2]).all() or np.any(np.diff(found[:, 0]) <= 0.0):
        raise ValueError(f"{file}: instants must increase, and be finite as positions are")
    return found


def slider_of(name: str, found: Array) -> tuple[Array, Array]:
    """Of a history: s, and the slider, m, all of one geometry."""
    return found[:, 0], found[:, 1] - OFFSET.get(name, 0.0)


# ---------------------------------------------------------------------------------- comparison


def compared(folder: Path, note: str = "") -> Compared:
    """Read, simulate each reading, measure."""
    files = read(folder)
    sliders = {name: slider_of(name, found) for name, found in files.items()}
    all_of_them = [t for t, _ in sliders.values()]
    last = max(t[-1] for t in all_of_them)
    check = np.array([t for t in SPATIAL_TIMES if t <= last])
    times = np.unique(np.concatenate([check, *all_of_them]))
    runs = {key: slider(reading, times) for key, reading in READINGS.items()}
    known = np.searchsorted(times, check)
    return Compared(
        date=datetime.date.today().isoformat(),
        histories=nearest_first(
            {
                name: {key: np.abs(x - runs[key][np.searchsorted(times, t)]) for key in READINGS}
                for name, (t, x) in sliders.items()
            },
            {name: t for name, (t, _) in sliders.items()},
        ),
        pairs=tuple(
            pair(one, other, sliders[one], sliders[other])
            for one, other in itertools.combinations(FILES, 2)
        ),
        lost=energy_lost(files[ENERGY_OF]),
        from_theory=max(
            float(np.abs(runs[key][known] - theory(reading, check)).max())
            for key, reading in READINGS.items()
        ),
        note=note,
    )


def nearest_first(
    off: Mapping[str, Mapping[str, Array]], times: Mapping[str, Array]
) -> tuple[History, ...]:
    """The largest distances; in the order of the page."""
    found = [
        History(
            name, len(times[name]),
            {key: float(d[times[name] <= SOON].max()) for key, d in ways.items()},
            {key: float(d.max()) for key, d in ways.items()},
        )
        for name, ways in off.items()
    ]  # fmt: skip
    return tuple(
        sorted(found, key=lambda h: (min(h.whole, key=h.whole.__getitem__), min(h.whole.values())))
    )


def pair(one: str, other: str, a: tuple[Array, Array], b: tuple[Array, Array]) -> Pair:
    """The one with more rows, by a cubic spline, at the instants of the other."""
    fine, coarse = (a, b) if len(a[0]) >= len(b[0]) else (b, a)
    t, x = coarse
    both = (t >= fine[0][0]) & (t <= fine[0][-1])
    d = np.abs(CubicSpline(*fine)(t[both]) - x[both])
    seen = np.flatnonzero(d > VISIBLE)
    return Pair(one, other, float(d.max()), float(t[both][seen[0]]) if len(seen) else None)


def energy_lost(found: Array) -> tuple[tuple[float, float], ...]:
    """Instants, and the part of the energy that is gone there, by the angle of the crank."""
    t, angle = found[:, 0], found[:, 2]
    one = spatial()
    start = one.energy(np.zeros(1), np.full(1, SPATIAL_RATE))[0]
    lost = []
    for instant in ENERGY_AT:
        k = int(np.clip(np.abs(t - instant).argmin(), 2, len(t) - 3))
        five = slice(k - 2, k + 3)
        rate = np.polyfit(t[five] - t[k], angle[five], 4)[-2]
        now = one.energy(angle[k : k + 1], np.full(1, rate))[0]
        lost.append((float(t[k]), 1.0 - float(now / start)))
    return tuple(lost)


def slider(reading: Reading, times: Array) -> Array:
    """Of holoctl's run, m."""
    mech, q, v = make_spatial(reading)
    found = hc.simulate(
        mech,
        None,
        q,
        v,
        times[-1],
        output=np.union1d(0.0, times),
        integrator=hc.Integrator(rtol=RTOL, atol=ATOL),
    )
    at = np.searchsorted(found.t, times - 1e-9)
    place = mech.model.idx_qs[mech.model.getJointId("slide")]
    return np.asarray(found.q[at, place])


def theory(reading: Reading, times: Array) -> Array:
    """The slider in the motion of one freedom."""
    from_start = np.append(0.0, times) if times[0] else times
    a, _ = spatial(512, reading).motion(from_start, 0.0, SPATIAL_RATE)
    return np.array([slider_at(x) for x in a])[-len(times) :]


def slider_at(a: float) -> float:
    """Where the slider is when the crank has turned by a."""
    y, z = 0.1 - 0.08 * np.sin(a), 0.12 + 0.08 * np.cos(a)
    return float(np.sqrt(0.3**2 - y * y - z * z))


def stroke() -> float:
    """How far the slider goes, m."""
    x = np.array([slider_at(a) for a in np.linspace(0.0, 2.0 * np.pi, 1000)])
    return float(np.ptp(x))


# --------------------------------------------------------------------------------- what is kept


def stored(found: Compared) -> str:
    """As JSON, two digits of each distance: no history can be told from them."""
    data = asdict(found)
    for x in data["histories"]:
        x.update({way: {key: two(d) for key, d in x[way].items()} for way in ("soon", "whole")})
    for x in data["pairs"]:
        x["distance"] = two(x["distance"])
        x["first"] = None if x["first"] is None else round(x["first"], 2)
    data["lost"] = [[round(t, 3), two(part)] for t, part in found.lost]
    data["from_theory"] = two(found.from_theory)
    return json.dumps(data, indent=1) + "\n"


def two(x: float) -> float:
    """Digits."""
    return float(f"{x:.1e}")


def kept(file: Path) -> Compared | None:
    """What `stored` wrote; None where there is none."""
    if not file.is_file():
        return None
    data = json.loads(file.read_text(encoding="utf-8"))
    data["histories"] = tuple(History(**x) for x in data["histories"])
    data["pairs"] = tuple(Pair(**x) for x in data["pairs"])
    data["lost"] = tuple((t, part) for t, part in data["lost"])
    return Compared(**data)
