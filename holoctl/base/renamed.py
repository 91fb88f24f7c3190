"""Public names that were changed: each former name works for one version, with a warning."""

from __future__ import annotations

__all__ = ["RENAMED"]

RENAMED = {
    "CompiledLoop": "Loop",
    "CompiledTaskLoop": "Loop",
    "PreparedAssembly": "ClosedStateEstimator",
    "Snapped": "RepairedGeometry",
    "TaskLoop": "Loop",
    "TaskTracking": "Tracking",
    "snapped": "repaired_geometry",
}
"""The former name of `holoctl` -> the name that it has now."""
