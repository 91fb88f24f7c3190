"""A film as a gif, written picture by picture: a long one needs no more memory than a short one.

    film = head, for ever | (how long, where, colors, picture) for each | end        GIF89a

Each picture is what has changed since the one before, with colors of its own. What is alike is one
picture that stays as long. Pillow packs the pictures; by itself it would keep all of them first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["LONGEST", "write_gif"]

LONGEST = 65535
"""Hundredths of a second that a picture can stay: sixteen bits."""

COLORS = 128
"""Of a picture."""

_FOR_EVER = b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
_END = b"\x3b"
_KEPT = 1 << 2  # what was drawn stays under the next picture
_OWN_COLORS, _INTERLACED = 0x80, 0x40

_Box = tuple[int, int, int, int]


def write_gif(path: Path, pictures: Iterable[Image], hundredths: int) -> None:
    """Write pictures of one size in RGB, each to stay for some hundredths of a second."""
    with path.open("wb") as file:
        for i, (picture, box, stays) in enumerate(_told_apart(pictures, hundredths)):
            if i == 0:
                file.write(b"GIF89a" + struct.pack("<HHBBB", *picture.size, 0, 0, 0) + _FOR_EVER)
            file.write(_block(picture, box, min(stays, LONGEST)))
            for more in range(LONGEST, stays, LONGEST):  # a corner of it again
                file.write(_block(picture, (0, 0, 1, 1), min(stays - more, LONGEST)))
        file.write(_END)


def _told_apart(pictures: Iterable[Image], hundredths: int) -> Iterator[tuple[Image, _Box, int]]:
    """Pictures that differ from the one before, where they do, and how long each stays."""
    from PIL import ImageChops

    last, where, stays = None, (0, 0, 0, 0), 0
    for picture in pictures:
        box = (0, 0, *picture.size)
        if last is not None:
            changed = ImageChops.difference(last, picture).getbbox()
            if changed is None:
                stays += hundredths
                continue
            yield last, where, stays
            box = changed
        last, where, stays = picture, box, hundredths
    if last is not None:
        yield last, where, stays


def _block(picture: Image, box: _Box, hundredths: int) -> bytes:
    """A part of a picture as a film has it: how long it stays, where, its colors, its points."""
    from PIL.Image import Quantize

    alone = BytesIO()
    picture.crop(box).quantize(COLORS, Quantize.FASTOCTREE).save(alone, "GIF")
    data = alone.getvalue()
    size = data[10] & 7  # there are 2^(size + 1) colors
    end = 13 + 3 * 2 ** (size + 1)
    colors, at = data[13:end], end
    while data[at] == 0x21:  # words beside the picture, in blocks that tell their length
        at += 2
        while data[at]:
            at += data[at] + 1
        at += 1
    width, height, how = struct.unpack("<5x HHB", data[at : at + 10])
    stays = struct.pack("<BBBBHBB", 0x21, 0xF9, 4, _KEPT, hundredths, 0, 0)
    flags = _OWN_COLORS | (how & _INTERLACED) | size
    place = struct.pack("<BHHHHB", 0x2C, box[0], box[1], width, height, flags)
    return stays + place + colors + data[at + 10 : -1]
