"""A film as a gif, written picture by picture, so that memory does not grow with its length.

    film = head, for ever | (duration, place, colors, picture) for each | end        GIF89a

Each picture is the part that has changed since the one before, with its own colors. Equal pictures
are written once, with their total duration. Pillow encodes the pictures; its own writer of films
would keep all of them in memory.
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
"""Longest duration of a picture, hundredths of a second (sixteen bits)."""

COLORS = 128
"""Number of colors of a picture."""

_FOR_EVER = b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
_END = b"\x3b"
_KEPT = 1 << 2  # the picture stays under the next one
_OWN_COLORS, _INTERLACED = 0x80, 0x40

_Box = tuple[int, int, int, int]


def write_gif(path: Path, pictures: Iterable[Image], hundredths: int) -> None:
    """Write pictures of one size in RGB, each with a duration in hundredths of a second."""
    with path.open("wb") as file:
        for i, (picture, box, stays) in enumerate(_changes(pictures, hundredths)):
            if i == 0:
                file.write(b"GIF89a" + struct.pack("<HHBBB", *picture.size, 0, 0, 0) + _FOR_EVER)
            file.write(_block(picture, box, min(stays, LONGEST)))
            for more in range(LONGEST, stays, LONGEST):  # repeat one of its points
                file.write(_block(picture, (0, 0, 1, 1), min(stays - more, LONGEST)))
        file.write(_END)


def _changes(pictures: Iterable[Image], hundredths: int) -> Iterator[tuple[Image, _Box, int]]:
    """Pictures that differ from the one before, the box in which they do, and their durations."""
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
    """The bytes of a part of a picture in a film: duration, place, colors and points."""
    from PIL.Image import Quantize

    alone = BytesIO()
    picture.crop(box).quantize(COLORS, Quantize.FASTOCTREE).save(alone, "GIF")
    data = alone.getvalue()
    size = data[10] & 7  # there are 2^(size + 1) colors
    end = 13 + 3 * 2 ** (size + 1)
    colors, at = data[13:end], end
    while data[at] == 0x21:  # extensions, in blocks that begin with their length
        at += 2
        while data[at]:
            at += data[at] + 1
        at += 1
    width, height, how = struct.unpack("<5x HHB", data[at : at + 10])
    stays = struct.pack("<BBBBHBB", 0x21, 0xF9, 4, _KEPT, hundredths, 0, 0)
    flags = _OWN_COLORS | (how & _INTERLACED) | size
    place = struct.pack("<BHHHHB", 0x2C, box[0], box[1], width, height, flags)
    return stays + place + colors + data[at + 10 : -1]
