"""Files that are nearly right give a mechanism or an error of ours."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest
from documents import RICH, URDF, with_joint
from hypothesis import given, settings
from hypothesis import strategies as st

import holoctl as hc

WORDS = [
    "", " ", "\n", '"', "<", ">", "/>", "<!--", "]]>", "&amp;", "&#0;", "&#10;", "\x00", "é",
    "\U0001f980",
    "nan", "inf", "-1", "0", "1e308", "1e-320", "1e999", "0x1", "1_0", "universe", "root_joint",
    "robot", "link", "joint", "base", "arm_a", "elbow", "continuous", "floating", "planar",
    "prismatic",
    "fixed", '<mimic joint="a"/>', '<mimic joint="b" multiplier="1e300"/>', "<limit/>", "<link/>",
    '<link name="base"/>', "<axis/>", "<inertial/>", "<dynamics/>", "<safety_controller/>",
    "[", "]", "{", "}", ":", ": ", "- ", ",", "&a ", "*a", "!!int ", "!!python/name:os.system ",
    "|", ">",
    "%YAML 1.2", "---\n", "...\n", "\t", "null", "yes", "~", "<<: ", "? ", "SPHERICAL", "FIXED",
    "UJOINT_yz",
    "6d", "x", "rx", "weld", "elbow[0]", "tip_a", "2024-01-01", "1:30",
]  # fmt: skip


edits = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.sampled_from([0, 0, 1, 3, 8, 40]),
        st.one_of(st.sampled_from(WORDS), st.text(max_size=4)),
    ),
    min_size=1,
    max_size=4,
)


def edited(text, changes):
    for place, length, new in changes:
        i = int(place * len(text))
        text = text[:i] + new + text[i + length :]
    return text.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("which", ["urdf", "yaml"])
def test_mutated_files_give_a_mechanism_or_an_error_of_ours(which, tmp_path):
    texts = {"urdf": URDF, "yaml": RICH}
    for name, text in texts.items():
        (tmp_path / f"arms.{name}").write_bytes(text.encode())
    outcomes, blamed = {"loaded": 0, "refused": 0}, set()

    @settings(max_examples=300)
    @given(changes=edits, free_flyer=st.booleans())
    def mutate(changes, free_flyer):
        (tmp_path / f"arms.{which}").write_bytes(edited(texts[which], changes))
        try:
            mech = hc.load(tmp_path / "arms.urdf", free_flyer=free_flyer)
        except hc.LoadError as error:
            outcomes["refused"] += 1
            blamed.add(Path(error.file))
        else:
            outcomes["loaded"] += 1
            assert np.isfinite(mech.reference).all()

    mutate()
    assert min(outcomes.values()) > 10, outcomes
    assert tmp_path / f"arms.{which}" in blamed
    assert {file.parent for file in blamed} == {tmp_path}


def test_mutated_attributes_of_a_valid_document(tmp_path):
    """Well-formed XML with wrong values: what Pinocchio's parser would complain about."""
    pieces = URDF.split('"')
    values = range(1, len(pieces), 2)

    @settings(max_examples=200)
    @given(
        st.lists(st.tuples(st.sampled_from(values), st.sampled_from(WORDS)), min_size=1, max_size=3)
    )
    def mutate(changes):
        changed = list(pieces)
        for i, word in changes:
            changed[i] = word.replace("<", "").replace('"', "").replace("&", "")
        (tmp_path / "arms.urdf").write_text('"'.join(changed), "utf-8")
        with contextlib.suppress(hc.LoadError):
            hc.load(tmp_path / "arms.urdf")

    mutate()


@pytest.mark.parametrize(
    ("before", "after", "meant"),
    [
        ('<axis xyz="0 0 1"/>', '<axes xyz="0 0 1"/>', "axis"),
        ('<origin xyz="0.5 0 0"/>', '<orgin xyz="0.5 0 0"/>', "origin"),
        ('<origin xyz="0.5 0 0"/>', '<origin xzy="0.5 0 0"/>', "xyz"),
        ('<dynamics damping="0.2"/>', '<dynamics dampping="0.2"/>', "damping"),
    ],
)
def test_a_slip_of_the_pen_does_not_change_the_robot(robot, before, after, meant):
    with pytest.raises(hc.LoadError, match=f"did you mean '{meant}'") as caught:
        robot(with_joint(before, after))
    assert caught.value.line


def test_a_robot_that_is_almost_shipped():
    with pytest.raises(hc.LoadError, match="did you mean 'five_bar'"):
        hc.load("fiv_bar")
