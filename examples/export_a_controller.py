"""Write the controller of a five-bar as C, build it, and run its self-test.

Needs CasADi (pip install 'holoctl[codegen]'); builds where CMake and a C compiler are there.
The loop around it is examples/c/five_bar_loop.c; docs/embedded.md explains both.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys

import holoctl as hc

if importlib.util.find_spec("casadi") is None:
    sys.exit("CasADi is not installed: pip install 'holoctl[codegen]'")

mech = hc.load(hc.robot_file("five_bar"))
limits = hc.limits_of(mech)  # those of the file
controller = hc.ComputedTorque(mech, kp=400.0, kd=40.0, closure_limit=0.02, limits=limits)

folder = "out/five_bar_c"
for path in hc.export_c(controller, folder, in_trouble="hold", hold_limit=50, plant=True):
    print(f"{path}: {len(path.read_text().splitlines())} lines")

if shutil.which("cmake") and shutil.which("cc"):
    build = f"{folder}/build"
    for command in (
        ["cmake", "-S", folder, "-B", build, "-DHOLOCTL_STRICT=ON"],
        ["cmake", "--build", build],
    ):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    test = f"{build}/holoctl_five_bar_test"
    print(subprocess.run([test], check=True, capture_output=True, text=True).stdout, end="")
else:
    print("no CMake or no C compiler here, so nothing is built")
