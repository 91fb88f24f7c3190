"""What MuJoCo's compiler says of a file, where the package ``mujoco`` is installed.

Meshes are not opened here: the mass and inertia that they give a body are asked for there.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.io.mjcf_elements import Item
from holoctl.io.rotations import quaternion

__all__ = ["CompiledFile"]


@dataclass
class CompiledFile:
    """The file as MuJoCo compiles it, which it does when the first body is asked for."""

    file: Path | None
    bodies: int  # with the world
    model: Any = field(default=None, repr=False)

    def lump(
        self, body: Item, index: int, geom: Item, why: str
    ) -> tuple[float, tuple[float, ...], pin.SE3]:
        """Mass, principal moments and their frame, of a body by its place in the file.

        Parameters
        ----------
        body : Item
        index : int
            The world is 0; depth first in the order of the file.
        geom : Item
            Where the file alone does not say it, and `why`.

        Raises
        ------
        LoadError
            If MuJoCo is not installed, or does not compile the file.
        """
        if self.model is None:
            self.model = self._compiled(geom, why)
        model = self.model
        if model.nbody != self.bodies or model.body(index).name != body.text("name"):
            raise geom.error(
                f"{why}; MuJoCo's compiler was asked, but finds other bodies ({model.nbody}, here "
                f"{self.bodies}); give the body an <inertial>"
            )
        w, x, y, z = model.body_iquat[index].tolist()
        return (
            float(model.body_mass[index]),
            tuple(model.body_inertia[index].tolist()),
            pin.SE3(quaternion(w, x, y, z), np.array(model.body_ipos[index])),
        )

    def _compiled(self, geom: Item, why: str) -> Any:
        other = (
            "give the body an <inertial>; MuJoCo writes one for each body of a model that it "
            'saves, with <compiler saveinertial="true"/>'
        )
        if self.file is None:
            raise geom.error(f"{why}; {other}")
        try:
            import mujoco
        except ImportError:
            raise geom.error(
                f"{why}; install the package mujoco (pip install 'holoctl[mujoco]'), and its "
                f"compiler is asked; or {other}"
            ) from None
        try:
            with warnings.catch_warnings():  # what it says of the rest of the file is no matter
                warnings.simplefilter("ignore")
                spec = mujoco.MjSpec.from_file(str(self.file))
                # Bodies as they stand in the file, with their masses: the total is scaled here.
                spec.compiler.fusestatic = False
                spec.compiler.settotalmass = -1.0
                return spec.compile()
        except (ValueError, RuntimeError, TypeError) as error:
            reason = " ".join(str(error).split())[:300]
            raise geom.error(
                f"{why}; MuJoCo's compiler was asked, and refuses the file: {reason}"
            ) from None
