"""MJCF documents with friction and springs, drawn at random: `document(seed)`."""

from __future__ import annotations

import numpy as np


class _Writer:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.degrees = self.chance(0.5)
        self.sites = []

    def chance(self, p):
        return self.rng.random() < p

    def one(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def number(self, least, most):
        return f"{self.rng.uniform(least, most):.4g}"

    def numbers(self, n, size=1.0):
        return " ".join(self.number(-size, size) for _ in range(n))

    def often(self, word, least, most, p=0.6):
        return f'{word}="{self.number(least, most)}"' if self.chance(p) else ""

    def joint(self, name, free):
        kind = "free" if free else self.one("hinge", "hinge", "slide", "ball")
        turn = 60.0 if self.degrees and kind == "hinge" else 1.0
        parts = [
            self.often("damping", 0.1, 3.0), self.often("frictionloss", 0.1, 2.0, p=0.3),
            self.often("ref", -turn, turn, p=0.4), self.often("springref", -turn, turn, p=0.5),
            self.often("stiffness", 0.5, 20.0), self.one("", 'class="stiff"'),
        ]  # fmt: skip
        if free:  # no force stands for its springs and its dry friction
            parts = [self.often("damping", 0.1, 3.0)]
        return (
            f'<joint name="{name}" type="{kind}" pos="{self.numbers(3)}" '
            f'axis="{self.numbers(3)}" {" ".join(parts)}/>'
        )

    def body(self, i, below, free):
        self.sites.append(f"s{i}")
        inner = "".join(self.body(j, deeper, False) for j, deeper in below)
        return (
            f'<body name="b{i}" pos="{self.numbers(3)}" euler="{self.numbers(3)}">'
            f'{self.joint(f"j{i}", free)}<geom size="0.1" pos="{self.numbers(3)}"/>'
            f'<site name="s{i}" pos="{self.numbers(3)}"/>{inner}</body>'
        )

    def tendon(self, i):
        a, b = self.rng.choice(self.sites, 2, replace=False)
        low = self.rng.uniform(0.1, 1.0)
        length = self.one("", "", f'springlength="{low:.4g}"', f'springlength="0 {low:.4g}"')
        words = f"{length} {self.often('stiffness', 1.0, 30.0, 0.8)} "
        words += self.often("damping", 0.1, 3.0)
        sites = f'<site site="{a}"/><site site="{b}"/>'
        name = f'name="t{i}"' if self.chance(0.7) else ""
        return f"<spatial {name} {words}>{sites}</spatial>"

    def tree(self):
        """Chains and branches of 2 to 8 bodies, the first of which may float."""
        n = int(self.rng.integers(2, 9))
        children = {i: [] for i in range(-1, n)}
        for i in range(n):
            children[int(self.rng.integers(max(-1, i - 2), i))].append(i)

        def below(i):
            return [(j, below(j)) for j in children[i]]

        free = self.chance(0.3)
        return "".join(self.body(i, rest, free and not i) for i, rest in below(-1))


def document(seed: int) -> str:
    """Hinges, slides and balls with damping and springs, tendons between sites; some float."""
    w = _Writer(seed)
    world = f'<site name="w0" pos="{w.numbers(3, 2.0)}"/>{w.tree()}'
    w.sites.append("w0")
    tendons = "".join(w.tendon(i) for i in range(w.rng.integers(0, 4)))
    motor = ""
    if 'type="hinge"' in world and w.chance(0.4):
        name = world[: world.index('type="hinge"')].rpartition('name="')[2].partition('"')[0]
        motor = f'<motor joint="{name}" gear="{w.number(1, 5)}" damping="{w.number(0.1, 1)}"/>'
    angle = "degree" if w.degrees else "radian"
    return (
        f'<mujoco><compiler angle="{angle}"/><default><default class="stiff">'
        f'<joint stiffness="{w.number(1, 9)}" damping="0.3"/></default></default>'
        f"<worldbody>{world}</worldbody><tendon>{tendons}</tendon>"
        f"<actuator>{motor}</actuator></mujoco>"
    )
