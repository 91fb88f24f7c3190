"""Friction and springs of a file: forces of the mechanism, or a warning that lists them.

In: the coefficients found by a reader, joint by joint. Out: `JointFriction`, `JointSpring` and
`Spring`, with unique names.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from holoctl.base.checks import listing
from holoctl.base.errors import InputError
from holoctl.forces.force_protocol import Force
from holoctl.forces.joint_friction import JointFriction
from holoctl.forces.joint_spring import JointSpring
from holoctl.forces.spring import Spring
from holoctl.io.reader_limits import FilePlace
from holoctl.io.xml import blamed_on
from holoctl.mechanism.description import bound_force, closures_among
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["FrictionAndSprings", "with_forces", "with_losses"]

log = logging.getLogger(__name__)


@dataclass
class FrictionAndSprings:
    """The friction and springs of a file.

    Attributes
    ----------
    file : str
    place : FilePlace
        The place of the friction in the file, for errors.
    viscous, coulomb : dict of str to float
        By joint, without zeros.
    springs : list of (JointSpring or Spring, FilePlace)
        Springs with their names.
    left_out : dict of str to str
        Elements that no force of the library represents, and why.
    """

    file: str
    place: FilePlace
    viscous: dict[str, float] = field(default_factory=dict)
    coulomb: dict[str, float] = field(default_factory=dict)
    springs: list[tuple[JointSpring | Spring, FilePlace]] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, joint: str, x: float) -> None:
        """Add friction of a joint; `kind` is ``"viscous"`` or ``"coulomb"``."""
        if x:
            of: dict[str, float] = getattr(self, kind)
            of[joint] = of.get(joint, 0.0) + x

    def forces(self, taken: Collection[str]) -> Iterator[tuple[Force, FilePlace]]:
        """The forces; a number is appended to a name that is `taken`."""
        used = set(taken)
        if self.viscous or self.coulomb:
            name = _free("friction", used)
            yield JointFriction(viscous=self.viscous, coulomb=self.coulomb, name=name), self.place
        for spring, place in self.springs:
            yield replace(spring, name=_free(spring.default_name, used)), place


def _free(name: str, used: set[str]) -> str:
    """A name that is not used yet, which is added to `used`."""
    label, i = name, 1
    while label in used:
        i += 1
        label = f"{name}-{i}"
    used.add(label)
    return label


def with_losses(mech: Mechanism, losses: FrictionAndSprings, read: bool) -> Mechanism:
    """The mechanism with the forces of a file; or, unless they are to be `read`, a warning."""
    if not read:
        _warn(losses)
        return mech
    forces = list(losses.forces(_names(mech)))
    if not forces and not losses.left_out:
        log.warning("%s: losses=True reads nothing: no friction or spring acts", losses.file)
    if losses.left_out:
        log.warning(
            "%s: left out, because no force represents %s", losses.file, _reasons(losses.left_out)
        )
    return with_forces(mech, forces)


def with_forces(mech: Mechanism, forces: list[tuple[Force, FilePlace]]) -> Mechanism:
    """The mechanism with more forces; an error of one of them names its line."""
    if not forces:
        return mech
    cut = closures_among(mech.constraints, mech.parked)
    taken = _names(mech)
    for force, place in forces:
        name = force.default_name
        with blamed_on(place):
            if name in taken:
                raise InputError(
                    f"a force is called {name!r}, like a constraint or force of the mechanism; "
                    "give it another name"
                )
            bound_force(force, name, mech.model, mech.reference, *cut)
    return mech.with_forces([force for force, _ in forces])


def _names(mech: Mechanism) -> tuple[str, ...]:
    """Names of all forces and constraints, also of those that are switched off."""
    off = (c.default_name for _, c in mech.parked)
    return (*mech.constraint_names, *mech.force_names, *off)


def _warn(losses: FrictionAndSprings) -> None:
    """Log one warning about friction and springs that are not in the equation of motion."""
    springs = [s.joint if isinstance(s, JointSpring) else s.default_name for s, _ in losses.springs]
    named = {"damping": losses.viscous, "Coulomb friction": losses.coulomb, "springs": springs}
    found = [f"{what} of {listing(list(of), 10)}" for what, of in named.items() if of]
    if found:
        found[0] = f"hc.load(..., losses=True) reads {found[0]}"
    if losses.left_out:
        found.append(f"no force represents {_reasons(losses.left_out)}")
    if found:
        log.warning(
            "%s: friction and springs of the file are not part of the equation of motion; %s",
            losses.file, "; ".join(found),
        )  # fmt: skip


def _reasons(left_out: Mapping[str, str]) -> str:
    some = [f"{what} ({why})" for what, why in list(left_out.items())[:10]]
    more = f"; and {len(left_out) - 10} more" if len(left_out) > 10 else ""
    return "; ".join(some) + more
