"""Draw the pictures of the documentation: ``python docs/pictures [NAME ...] [--out FOLDER]``.

Each topic module beside this file has ``PICTURES``: a name, as of the png without its suffix, to a
function that returns a matplotlib figure. Without names all are drawn.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
DOTS_PER_INCH = 150
MOST_BYTES = 120_000
NO_TOPICS = {"__main__", "style"}

Draw = Callable[[], "Figure"]  # noqa: F821 # matplotlib's, imported when something is drawn


def topics() -> list[Path]:
    """The modules that draw."""
    return sorted(path for path in HERE.glob("*.py") if path.stem not in NO_TOPICS)


def loaded(path: Path) -> ModuleType:
    """A topic, by its path: docs/ is no package. It finds `style` beside itself."""
    if str(HERE) not in sys.path:
        sys.path.append(str(HERE))
    spec = importlib.util.spec_from_file_location(f"pictures_{path.stem.replace('-', '_')}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses of a topic look for their module
    spec.loader.exec_module(module)
    return module


def pictures() -> dict[str, Draw]:
    """Name to function, of all topics. A name of two topics is refused."""
    found: dict[str, Draw] = {}
    for path in topics():
        for name, draw in loaded(path).PICTURES.items():
            if name in found:
                raise SystemExit(f"{path.name}: another topic has a picture {name!r} too")
            found[name] = draw
    return found


def png(draw: Draw) -> bytes:
    """The picture: 150 dpi, white, at most 256 colors, without date or version."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from PIL import Image
    from style import LOOK

    raw, small = io.BytesIO(), io.BytesIO()
    with mpl.rc_context(LOOK):
        figure = draw()
        figure.savefig(raw, dpi=DOTS_PER_INCH, facecolor="white")
    plt.close(figure)
    image = Image.open(raw).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    image.save(small, "png", optimize=True)
    return small.getvalue()


def draw_all(names: list[str], out: Path) -> None:
    """Draw these, all without names, into a folder; a line for each."""
    known = pictures()
    if unknown := sorted(set(names) - set(known)):
        raise SystemExit(f"no picture {', '.join(unknown)}; there are {', '.join(known)}")
    out.mkdir(parents=True, exist_ok=True)
    for name in names or known:
        start = time.perf_counter()
        data = png(known[name])
        (out / f"{name}.png").write_bytes(data)
        spent = time.perf_counter() - start
        print(f"{name}.png  {len(data) / 1000:.0f} kB  {spent:.1f} s", flush=True)
        if len(data) > MOST_BYTES:
            raise SystemExit(f"{name}.png has {len(data)} bytes; at most {MOST_BYTES}")


def main() -> None:
    parser = argparse.ArgumentParser("docs/pictures", description="Draw the pictures of the docs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a picture; default: all")
    parser.add_argument("--out", type=Path, default=HERE, help="folder; default: docs/pictures")
    given = parser.parse_args()
    draw_all(given.names, given.out)


if __name__ == "__main__":
    main()
