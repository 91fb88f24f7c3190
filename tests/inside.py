"""What tests look at inside, each in one place: it has no public name yet."""

from __future__ import annotations

import sys

from holoctl.dynamics.tick import prepared_forward, prepared_inverse
from holoctl.io import urdf


def bound(mech):
    """The constraints as the mechanism has bound them to its model."""
    return mech._bound


def general_path(prepared, *state):
    """What a prepared dynamics answers where its fast path has doubts: the oracle."""
    return prepared._by_the_general_path(*state)


def fast_path(prepared):
    """The fast path alone: None, as a whole or at a state, where the general one answers."""
    return sys.modules[type(prepared).__module__]._lay_out(prepared)


def sparse_path(prepared):
    """Of the forward dynamics, the part of the fast path that goes through Pinocchio."""
    return prepared_forward._sparse(prepared)


def banded(mech, part):
    """Kept rows and dependent coordinates in the order of their band, and its widths."""
    return prepared_inverse._ordered(mech, part)


def with_balls(model, balls):
    """A model of a file with some of its joints replaced by balls."""
    return urdf._with_balls(model, balls)


def shown(model):
    """The names of what a frozen model has handed out copies of."""
    return set(model._shown)
