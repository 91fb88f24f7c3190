"""Spatial tendons of an MJCF that are a straight line between two sites."""

from __future__ import annotations

from holoctl.io.mjcf_compiled import CompiledMjcf

__all__ = ["not_straight"]

_PULLEY, _SITE = 2, 3  # mjtWrap


def not_straight(found: CompiledMjcf, t: int) -> str:
    """Why a tendon is not a line between two sites; empty if it is."""
    m, first = found.model, found.model.tendon_adr[t]
    kinds = m.wrap_type[first : first + m.tendon_num[t]].tolist()
    if found.arms(t) is not None:
        return "a fixed tendon"
    if any(kind >= _PULLEY and kind != _SITE for kind in kinds):
        return "it goes around a geom, or over a pulley"
    return "" if len(kinds) == 2 else f"it goes through {len(kinds)} sites, and not through two"
