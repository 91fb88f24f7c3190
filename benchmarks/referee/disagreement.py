"""docs/referee-slider-crank.md: the published histories of the spatial slider-crank."""

from __future__ import annotations

from referee import histories
from referee.histories import Compared
from referee.tables import count, figure, filled, picture, table

HISTORIES = (
    "Bars, logarithmic: distance of each published history from holoctl's runs with three "
    "readings; and, for each two histories, how far they are apart and from when on"
)
HISTORIES_FROM = (
    f"Sources: {histories.PUBLISHED}, as given to the IFToMM library of benchmark problems; "
    "MBDyn's file: tests/benchmarks/srskm/srscm."
)
PAGE = "referee-slider-crank.md"
BESIDE = (
    "Part of the [published problems](referee.md); written by `make referee`, not edited by hand."
)

READINGS = """\
Six histories were given for the IFToMM benchmark "rigid spatial slider-crank". They do not agree,
though geometry and start are the same. Files of it can be interpreted in more than one way: about
which axis the rod's small moment of inertia is, where the crank's centre of mass is, how the joint
at the slider is made. holoctl simulates three readings; each of its runs is checked by the
motion of one freedom, so that the distances below are those of the histories. holoctl, and
[the table of all problems](referee.md#simulations), have reading *a*."""

FOLDER = """\
The histories are not ours, and none of their numbers is kept here; the distances are measured from
the files of those who gave them, six texts in {published}. With them in a folder,
`make referee HISTORIES=folder` measures again (with `REWRITE=1`: this page alone, in seconds).
The files:"""


def disagreement(found: Compared) -> str:
    """The whole page."""
    head = (
        "history", "instants", *(f"from {key}, {span}, m" for key in histories.READINGS
                                 for span in ("1 s", "5 s")), "reading",
    )  # fmt: skip
    rows = [
        [
            h.name, count(h.rows),
            *(figure(way[key]) for key in histories.READINGS for way in (h.soon, h.whole)),
            histories.WHY[h.name],
        ]
        for h in found.histories
    ]  # fmt: skip
    meanings = "\n".join(f"- *{key}*: {text}." for key, text in histories.MEANING.items())
    lost = " and, at ".join(f"{t:.2f} s, {part:.2%}" for t, part in found.lost)
    files = "\n".join(f"- {name}: `{file}`" for name, file in histories.FILES.items())
    after = (
        f"holoctl's runs are within {found.from_theory:.0e} m of the motions of one freedom. The "
        f"stroke of the slider is {histories.stroke():.3f} m. By the rate of its crank, "
        f"{histories.ENERGY_OF}'s history has lost, at {lost} of its energy (heights from the "
        "guide); MBDyn's file has steps of 4 ms and a method that damps. Measured on "
        f"{found.date}. {found.note}"
    )
    among = (
        "Among themselves, right of the diagonal: the largest distance, mm; left of it: the first "
        f"instant at which two are more than {1e3 * histories.VISIBLE:.0f} mm apart, s. The one "
        "with more rows is taken by a cubic spline at the instants of the other."
    )
    folder = FOLDER.format(published=histories.PUBLISHED)
    return "\n\n".join(
        (
            "# The spatial slider-crank: six published histories", BESIDE, READINGS,
            picture(HISTORIES, "histories"), meanings,
            table(head, rows, 1, left=(len(head) - 1,)), filled(after.strip()), filled(among),
            apart(found), filled(folder), files,
            filled(HISTORIES_FROM),
        )
    ) + "\n"  # fmt: skip


def apart(found: Compared) -> str:
    """Each history beside each."""
    names = [h.name for h in found.histories]
    pairs = {frozenset((x.one, x.other)): x for x in found.pairs}
    rows = []
    for i, one in enumerate(names):
        cells = [one]
        for k, other in enumerate(names):
            x = pairs.get(frozenset((one, other)))
            instant = "never" if x is None or x.first is None else f"{x.first:.2f} s"
            cells.append("" if x is None else figure(1e3 * x.distance, ".0f") if k > i else instant)
        rows.append(cells)
    return table(("", *names), rows, 1)
