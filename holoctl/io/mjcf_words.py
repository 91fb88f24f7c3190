"""The words of MJCF: which elements and attributes may stand where, and which are refused.

What changes the equation of motion is read or refused by name; what does not is listed as
ignored; everything else is an error.
"""

from __future__ import annotations

from holoctl.base.checks import suggestion
from holoctl.io.xml import Element

__all__ = ["ATTRIBUTES", "MOTORS", "NO_MOTORS", "check_words"]

_POSE = "pos quat axisangle xyaxes zaxis euler"
_CONTACT_LOOKS = (
    "adhesion castshadow conaffinity condim contype fitscale fluidcoef fluidshape friction gap "
    "hfield margin material priority rgba solimp solmix solref surfacevel user"
)
_SERVO = (
    "actdim actearly actlimited actrange area bias biasprm biastype cogging controller "
    "ctrllimited ctrlrange dampratio delay diameter dynprm dyntype ffrange forcelimited "
    "forcerange gainprm gaintype group imax inductance inheritrange input interp ki kp kv "
    "lengthrange lugre motorconst nominal nsample posrange resistance saturation slewmax thermal "
    "timeconst user velrange"
)
_TRANSMISSION = "joint jointinparent tendon site refsite slidersite cranksite cranklength body"

MOTORS = (
    "motor", "general", "position", "velocity", "intvelocity", "pid", "dcmotor", "cylinder",
)  # fmt: skip
"""Actuators whose force is the user's, or that of a servo: each is a motor."""

NO_MOTORS = {
    "muscle": "a muscle is no motor; leave it out and pass its force as an effort",
    "adhesion": "adhesion is no motor; leave it out and pass its force as an effort",
    "damper": "a damper is no motor; leave it out and pass its force as an effort",
    "orientation": "it drives a site or several coordinates; give motors on joints",
    "plugin": "what a plugin does is not known",
}
"""Actuators that make no motor, and what to do about them."""

ATTRIBUTES: dict[str, tuple[str, str]] = {  # tag: attributes read, attributes ignored
    "mujoco": ("model", ""),
    "compiler": (
        "alignfree angle autolimits balanceinertia boundinertia boundmass coordinate eulerseq "
        "inertiafromgeom inertiagrouprange settotalmass",
        "assetdir conflict convexhull discardvisual exactmeshinertia fitaabb fusestatic meshdir "
        "passthrough savecanonical savecompiled saveinertial strippath texturedir usethread",
    ),
    "option": (
        "gravity density viscosity",
        "actuatorgroupdisable apirate ccd_iterations ccd_tolerance collision cone impratio "
        "integrator iterations jacobian ls_iterations ls_tolerance magnetic mpr_iterations "
        "mpr_tolerance noslip_iterations noslip_tolerance o_friction o_margin o_solimp o_solref "
        "sdf_initpoints sdf_iterations sleep_tolerance solver timestep tolerance wind",
    ),
    "flag": (
        "constraint damper equality frictionloss gravity passive spring",
        "actuation autoreset clampctrl contact diagexact energy eulerdamp "
        "filterparent fwdinv invdiscrete ipc island limit midphase multiccd "
        "nativeccd override refsafe sensor sleep speculative warmstart",
    ),
    "default": ("class", ""),
    "worldbody": ("", ""),
    "body": (f"name childclass gravcomp mocap {_POSE}", "fuse simple sleep user"),
    "frame": (f"name childclass {_POSE}", ""),
    "replicate": ("count offset euler sep childclass", ""),
    "inertial": (f"mass diaginertia fullinertia {_POSE}", ""),
    "joint": (
        "name class type pos axis range limited ref armature damping frictionloss stiffness "
        "springdamper springref springyield actuatorfrcrange actuatorfrclimited",
        "actuatorgravcomp group margin solimpfriction solimplimit solreffriction solreflimit user",
    ),
    "freejoint": ("name align", "group"),
    "geom": (
        f"name class type size fromto mass density shellinertia mesh group {_POSE}",
        _CONTACT_LOOKS,
    ),
    "site": (f"name class fromto {_POSE}", "group material mesh rgba size type user"),
    "connect": ("name class active body1 body2 site1 site2 anchor", "solimp solref"),
    "weld": (
        "name class active body1 body2 site1 site2 anchor relpose torquescale",
        "solimp solref",
    ),
    "joint of equality": ("name class active joint1 joint2 polycoef", "solimp solref"),
    "equality of default": ("active", "solimp solref"),
    "key": ("name qpos", "act ctrl mpos mquat qvel time user"),
    "fixed": ("name class armature stiffness damping frictionloss springlength springyield", "*"),
    "spatial": ("name class armature stiffness damping frictionloss springlength springyield", "*"),
    "joint of tendon": ("joint coef", ""),
    "tendon of equality": ("name class active tendon1 tendon2 polycoef", "solimp solref"),
    **dict.fromkeys(NO_MOTORS, (f"name class gear armature damping {_TRANSMISSION}", "*")),
    **dict.fromkeys(MOTORS, (f"name class gear armature damping {_TRANSMISSION}", _SERVO)),
}

_IN_BODY = "body frame replicate joint freejoint inertial geom site"
_REFUSED_IN_BODY = "attach composite flexcomp plugin"
_CHILDREN: dict[str, tuple[str, str, str]] = {  # tag: elements read, ignored, refused by name
    "mujoco": (
        "compiler option default worldbody equality actuator tendon keyframe deformable",
        "asset contact custom extension sensor size statistic visual",
        "",
    ),
    "compiler": ("", "lengthrange", ""),
    "option": ("flag", "", ""),
    "default": (
        "default joint geom site equality general motor position velocity intvelocity pid "
        "dcmotor cylinder",
        "adhesion camera damper light material mesh muscle orientation pair tendon texture",
        "",
    ),
    "worldbody": ("body frame replicate geom site", "camera light", _REFUSED_IN_BODY),
    "body": (_IN_BODY, "camera light", _REFUSED_IN_BODY),
    "frame": (_IN_BODY, "camera light", _REFUSED_IN_BODY),
    "replicate": ("body frame replicate geom site", "camera light", _REFUSED_IN_BODY),
    "geom": ("", "plugin", ""),
    "equality": ("connect weld joint tendon", "", "distance flex flexstrain flexvert"),
    "actuator": (" ".join((*MOTORS, *NO_MOTORS)), "", ""),
    **dict.fromkeys(NO_MOTORS, ("", "config", "")),
    "tendon": ("fixed spatial", "", ""),
    "fixed": ("joint", "", ""),
    "spatial": ("", "geom pulley site", ""),
    "keyframe": ("key", "", ""),
    "deformable": ("", "skin", "flex"),
}

_WHY = {
    "attach": "write the attached model out; MuJoCo can: save the compiled model as XML",
    "composite": "write the bodies out; MuJoCo can: save the compiled model as XML",
    "flexcomp": "what bends is not a rigid body",
    "flex": "what bends is not a rigid body",
    "flexstrain": "what bends is not a rigid body",
    "flexvert": "what bends is not a rigid body",
    "plugin": "what a plugin does is not known",
    "distance": "use hc.Rod on the mechanism",
}


def check_words(root: Element) -> None:
    """Refuse what is not understood: elements and attributes, each by name.

    Elements that are ignored are not looked into.
    """
    waiting = [(root, root.tag)]
    while waiting:
        element, kind = waiting.pop()
        _check_attributes(element, kind)
        read, ignored, refused = (words.split() for words in _CHILDREN.get(kind, ("", "", "")))
        for child in reversed(element.children):
            if child.tag in read:
                waiting.append((child, _kind(child.tag, kind)))
            elif child.tag in refused:
                raise child.error(f"{child} in <{element.tag}> is not read: {_WHY[child.tag]}")
            elif child.tag not in ignored:
                valid = [*read, *ignored]
                raise child.error(
                    f"there is no element <{child.tag}> in <{element.tag}>"
                    f"{suggestion(child.tag, valid)}; valid: {', '.join(valid) or 'none'}"
                )


def _kind(tag: str, parent: str) -> str:
    """The row of the tables for an element; some tags mean two things."""
    if (parent, tag) in (("equality", "joint"), ("equality", "tendon")):
        return f"{tag} of equality"
    if parent == "fixed":
        return "joint of tendon"
    return "equality of default" if parent == "default" and tag == "equality" else tag


def _check_attributes(element: Element, kind: str) -> None:
    if kind not in ATTRIBUTES:
        valid: list[str] = []
    else:
        read, ignored = ATTRIBUTES[kind]
        if ignored == "*":
            return
        valid = [*read.split(), *ignored.split()]
    for name in element.attributes:
        if name not in valid:
            raise element.error(
                f"{element} has no attribute {name!r}{suggestion(name, valid)}; "
                f"valid: {', '.join(valid) or 'none'}"
            )
