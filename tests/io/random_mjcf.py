"""MJCF documents drawn at random, with what is odd in the format: `document(seed)`."""

from __future__ import annotations

import numpy as np


class _Writer:
    """One document while it is drawn."""

    def __init__(self, seed, meshes):
        self.rng = np.random.default_rng(seed)
        self.meshes, self.count = meshes, 0
        self.joints, self.bodies, self.sites = [], [], []
        self.ends, self.tendons, self.nv = [], [], 0

    def one(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def chance(self, p):
        return self.rng.random() < p

    def numbers(self, n, size=1.0):
        return " ".join(f"{x:.3g}" for x in self.rng.uniform(-size, size, n))

    def name(self, kind):
        self.count += 1
        return f"{kind}{self.count}"

    def turn(self):
        way = self.rng.integers(7)
        return (
            "",
            f'euler="{self.numbers(3, 90)}"',
            f'quat="{self.numbers(4)}"',
            f'axisangle="{self.numbers(4, 3)}"',
            f'xyaxes="{self.numbers(6)}"',
            f'zaxis="{self.numbers(3)}"',
            "",
        )[way]

    def pose(self):
        return f'pos="{self.numbers(3)}" {self.turn()}'

    def style(self, *names):
        return f'class="{self.one(*names)}"' if self.chance(0.3) else ""

    # ------------------------------------------------------------------------------ bodies

    def geom(self):
        if self.meshes and self.chance(0.3):
            extra = self.one("", 'mass="0.7"', 'density="30"', 'type="box"')
            kind = "" if extra.startswith("type") else 'type="mesh"'
            return f'<geom {kind} mesh="wedge" {extra} {self.pose()}/>'
        kind = self.one("sphere", "box", "capsule", "cylinder", "ellipsoid")
        size = " ".join(f"{x:.3g}" for x in self.rng.uniform(0.05, 0.3, 3))
        if kind in ("capsule", "cylinder", "box") and self.chance(0.3):
            where = f'fromto="{self.numbers(6)}"'
        else:
            where = self.pose()
        group = f'group="{self.rng.integers(6)}"' if self.chance(0.2) else ""
        style = self.style("main", "thin", "deep")
        return f'<geom {style} type="{kind}" size="{size}" {where} {group}/>'

    def joint(self, copied, last):
        name = self.name("j")
        kind = self.one("hinge", "hinge", "slide", "ball" if last else "slide")
        if not copied and kind != "ball":
            self.joints.append(name)
        ref = f'ref="{self.numbers(1)}"' if kind != "ball" and self.chance(0.3) else ""
        rotor = f'armature="{abs(self.rng.normal()):.3g}"' if self.chance(0.3) else ""
        self.nv += 3 if kind == "ball" else 1
        return (
            f'<joint name="{name}" type="{kind}" pos="{self.numbers(3)}" axis="{self.numbers(3)}" '
            f"{ref} {rotor} {self.style('main', 'thin', 'deep')}/>"
        )

    def site(self, copied):
        name = self.name("s")
        if not copied:
            self.sites.append(name)
        return f'<site name="{name}" {self.pose()}/>'

    def body(self, depth, copied, in_world=False):
        name = self.name("b")
        if not copied:
            self.bodies.append(name)
        parts = [self.geom()]
        if in_world and self.chance(0.15):
            parts.append(self.one("<freejoint/>", '<joint type="free"/>'))
            self.nv += 6
        else:
            n = self.rng.integers(0 if depth else 1, 4)
            joints = [self.joint(copied, last=i == n - 1) for i in range(n)]
            parts.append("".join(joints))
        if self.chance(0.4):
            x = np.sort(self.rng.uniform(0.1, 0.2, 3))
            parts.append(
                f'<inertial mass="{self.rng.uniform(0.1, 2):.3g}" {self.pose()} '
                f'diaginertia="{x[0]:.4g} {x[1]:.4g} {x[2]:.4g}"/>'
            )
        if self.chance(0.3):
            parts.append(self.site(copied))
        parts += self.inside(depth + 1, copied)
        self.rng.shuffle(parts)
        style = self.style("main", "thin", "deep").replace("class", "childclass")
        return f'<body name="{name}" {self.pose()} {style}>{"".join(parts)}</body>'

    def inside(self, depth, copied):
        """What stands in a body or in the world: bodies, frames and copies of them."""
        found = []
        for _ in range(self.rng.integers(0, 3) if depth else 2):
            if depth > 3 or self.nv > 30:
                break
            way = self.rng.random()
            if way < 0.6:
                found.append(self.body(depth, copied, in_world=depth == 0))
            elif way < 0.8:
                style = (
                    f'childclass="{self.one("main", "thin", "deep")}"' if self.chance(0.5) else ""
                )
                inner = self.body(depth + 1, copied)
                found.append(f"<frame {self.pose()} {style}>{inner}</frame>")
            else:
                count = self.rng.integers(1, 4)
                before = self.nv
                inner = self.body(depth + 1, True)
                self.nv += (count - 1) * (self.nv - before)
                found.append(
                    f'<replicate count="{count}" sep="{self.name("_")}_" '
                    f'offset="{self.numbers(3)}" euler="{self.numbers(3, 90)}">{inner}</replicate>'
                )
        return found

    # -------------------------------------------------------------------------- what refers

    def equality(self):
        kind = self.one("connect", "weld", "joint", "tendon")
        if kind == "joint" and len(self.joints) > 1:
            a, b = self.rng.choice(self.joints, 2, replace=False)
            second = f'joint2="{b}"' if self.chance(0.7) else ""
            return f'<joint joint1="{a}" {second} polycoef="{self.numbers(2)}"/>'
        if kind == "tendon" and self.tendons:
            chosen = self.rng.permutation(self.tendons)
            second = f'tendon2="{chosen[1]}"' if len(chosen) > 1 and self.chance(0.7) else ""
            return f'<tendon tendon1="{chosen[0]}" {second} polycoef="{self.numbers(2)}"/>'
        if len(self.sites) > 1 and self.chance(0.3):
            a, b = self.rng.choice(self.sites, 2, replace=False)
            return f'<{"connect" if kind == "connect" else "weld"} site1="{a}" site2="{b}"/>'
        a, b = self.rng.choice([*self.bodies, "world"], 2, replace=False)
        ends = f'body1="{a}" body2="{b}" anchor="{self.numbers(3)}"'
        if kind == "connect":
            return f"<connect {ends}/>"
        relative = f'relpose="{self.numbers(7)}"' if self.chance(0.5) else ""
        scale = f'torquescale="{self.one("0", "0.5", "3", "1")}"' if self.chance(0.6) else ""
        return f"<weld {ends} {relative} {scale}/>"

    def tendon(self):
        name = self.name("t")
        self.tendons.append(name)
        n = self.rng.integers(1, min(3, len(self.joints)) + 1)
        chosen = self.rng.choice(self.joints, n, replace=False)
        joints = "".join(f'<joint joint="{j}" coef="{self.numbers(1, 3)}"/>' for j in chosen)
        return f'<fixed name="{name}">{joints}</fixed>'

    def actuator(self):
        gear = f'gear="{self.rng.uniform(0.5, 3):.3g}"'
        if self.tendons and self.chance(0.4):
            return f'<motor tendon="{self.one(*self.tendons)}" {gear}/>'
        rotor = f'armature="{self.rng.random():.3g}"' if self.chance(0.3) else ""
        return f'<general joint="{self.one(*self.joints)}" {gear} {rotor}/>'

    def sections(self):
        rest = ""
        if self.joints:
            some = [self.tendon() for _ in range(self.rng.integers(0, 4))]
            rest += f"<tendon>{''.join(some)}</tendon>"
            some = [self.actuator() for _ in range(self.rng.integers(0, 4))]
            rest += f"<actuator>{''.join(some)}</actuator>"
        if len(self.bodies) > 1:
            some = [self.equality() for _ in range(self.rng.integers(0, 5))]
            rest += f"<equality>{''.join(some)}</equality>"
        return rest

    def head(self):
        settings = [
            self.one("", 'eulerseq="ZYX"', 'eulerseq="xzX"'),
            self.one("", 'inertiafromgeom="true"', 'inertiagrouprange="0 3"'),
            self.one("", 'boundmass="0.05" boundinertia="0.002"'),
            self.one("", 'fusestatic="true"'),
        ]
        mesh = (
            '<asset><mesh name="wedge" vertex="0 0 0 0.3 0 0 0 0.2 0 0 0 0.1 0.3 0.2 0"/></asset>'
        )
        return (
            f"<compiler {' '.join(settings)}/>{mesh if self.meshes else ''}"
            f'<option gravity="{self.numbers(3, 10)}"/>'
            '<default><geom density="500"/><default class="thin">'
            '<geom density="50" quat="1 2 3 4"/>'
            '<joint axis="0 1 0" armature="0.1"/><default class="deep"><joint pos="0 0 0.1"/>'
            '<geom mass="0.3" euler="10 0 0"/></default></default></default>'
        )


def document(seed: int, meshes: bool = False) -> str:
    """A document that has at least one joint."""
    writer = _Writer(seed, meshes)
    world = ""
    while not writer.nv:
        world = "".join(writer.inside(0, False))
    return f"<mujoco>{writer.head()}<worldbody>{world}</worldbody>{writer.sections()}</mujoco>"
