"""Kernels on a GPU of NVIDIA's: all of Python's part, on a driver and a compiler that pretend.

They are `cuda_on_the_host.c`. NVIDIA's own compiler needs no GPU, and is tried where it is.
"""

from __future__ import annotations

import ctypes
import gc
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from exported import compilers, controller, robot, run
from support import closed_states, mechanism, shared_partition

import holoctl as hc
from holoctl.codegen.batched_functions import batched_tanh_exp
from holoctl.codegen.c_source import c_function
from holoctl.codegen.devices import driver
from holoctl.codegen.devices.cuda import on_cuda
from holoctl.codegen.devices.host import on_cores
from holoctl.codegen.devices.kernels import Kernel, Program, program
from holoctl.codegen.devices.nvrtc import machine_code_of, thread_memory
from holoctl.codegen.expressions import symbolic
from holoctl.codegen.laws.inverse_dynamics import inverse_function

GPU, H200, A100, SPILLS = 2, 90, 80, 1024
"""GPU in DLPack; compute capabilities; most bytes that a function may move from registers to its
stack: more would cost more than what it computes."""

SCALE = Kernel(
    "scale",
    (("table", "x"), ("double", "factor"), ("long long", "n"), ("table", "y"), ("marks", "large")),
    "  double z[8];\n  load(x, k, 0, (int)n, z);\n"
    "  for (int i = 0; i < n; i++) z[i] *= factor;\n  store(z, (int)n, y, k, 0);\n"
    "  if (large.at) large.at[k * large.robot] = z[0] > 1.0;",
)


@pytest.fixture(scope="module")
def pretended(tmp_path_factory):
    """The library that is driver and compiler, and the functions that are the tests' own."""
    if not shutil.which("g++"):
        pytest.skip("no g++ is here")
    made = tmp_path_factory.mktemp("cuda") / "cuda.so"
    source = Path(__file__).with_name("cuda_on_the_host.c")
    run(compilers()[0], "-std=gnu99", "-O1", "-w", "-fPIC", "-shared", source, "-o", made, "-ldl")
    library = ctypes.CDLL(str(made))
    library.bytes_in_use.restype = ctypes.c_size_t
    return made, library


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def device(pretended, cache, monkeypatch):
    """A GPU, whose every array is freed by the end of a test."""
    path, library = pretended
    for name in "HOLOCTL_CUDA", "HOLOCTL_NVRTC":
        monkeypatch.setenv(name, str(path))
    monkeypatch.setenv("HOLOCTL_CACHE", str(cache))
    yield on_cuda()
    gc.collect()
    assert library.bytes_in_use() == 0


class Other:
    """An array of another library on the GPU: what it owns is NumPy's, as this GPU is the host."""

    def __init__(self, x, ordinal=0, versions=True):
        self.x, self.ordinal, self.versions = x, ordinal, versions

    def __dlpack_device__(self):
        return GPU, self.ordinal

    def __dlpack__(self, *, stream, **more):
        assert stream == 1
        if more and not self.versions:
            raise TypeError("max_version is unknown")
        return self.x.__dlpack__(**more)


class Relabelled:
    """An array of ours that says that it is in the memory of the CPU, for NumPy to read."""

    def __init__(self, array, versions):
        self.array, self.versions = array, versions

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_):
        name, at = (b"dltensor_versioned", 40) if self.versions else (b"dltensor", 8)
        capsule = self.array.__dlpack__(max_version=(1, 0) if self.versions else None)
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        ctypes.c_int32.from_address(get(capsule, name) + at).value = 1
        return capsule


# ---------------------------------------------------------------------------- kernels


def torques(name):
    """The law of inverse dynamics as a kernel."""
    mech = mechanism(name)
    f = inverse_function(symbolic(mech, shared_partition(name)))
    kernel = Kernel(
        "torques",
        (("table", "q"), ("table", "v"), ("table", "target"), ("table", "u")),
        f"  double x[{mech.nq}], rates[{mech.nv}], w[{mech.nu}], y[{mech.nu}], a[{mech.nv}];\n"
        f"  double guard, t = 0.0;\n  load(q, k, 0, {mech.nq}, x);\n"
        f"  load(v, k, 0, {mech.nv}, rates);\n  load(target, k, 0, {mech.nu}, w);\n"
        f"  inverse_dynamics(x, rates, w, &t, y, a, &guard);\n  store(y, {mech.nu}, u, k, 0);",
    )
    return program(batched_tanh_exp(c_function(f)), [kernel])


def states_of(name):
    """Positions and velocities of 100 robots."""
    return (np.array(x) for x in zip(*closed_states(name)[:100], strict=True))


def test_a_law_gives_the_numbers_of_the_cores(device):
    mech, made = mechanism("five_bar"), torques("five_bar")
    q, v = states_of("five_bar")
    target, found = np.random.default_rng(0).normal(size=(len(q), mech.nu)), []
    for on in device, on_cores(1):
        u = on.empty(target.shape)
        given = (on.array(*x) for x in (("q", q), ("v", v), ("target", target)))
        on.build(made).run("torques", len(q), *given, u)
        found.append(on.numpy(u))
    direct = hc.PreparedInverseDynamics(mech)
    expected = [direct.torque(*x) for x in zip(q, v, target, strict=True)]
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(found[0], found[1], rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(found[0], expected, rtol=1e-10, atol=1e-10)


def test_more_robots_than_one_launch_takes(device, monkeypatch):
    monkeypatch.setattr(driver, "LAUNCH", 2 * driver.BLOCK)
    x = np.arange(10.0 * driver.BLOCK + 3)
    y, large = device.empty(x.shape), device.empty(x.shape, np.uint8)
    given, made = device.array("x", x), device.build(program("", [SCALE]))
    made.run("scale", len(x), given, 2.0, 1, y, large)
    np.testing.assert_array_equal(device.numpy(y), 2.0 * x)
    assert device.numpy(large).sum() == len(x) - 1
    made.run("scale", 0, given, 5.0, 1, y, large)
    np.testing.assert_array_equal(device.numpy(y), 2.0 * x)


def test_a_stride_of_zero_gives_all_robots_the_same(device):
    x = np.broadcast_to([1.0, 2.0, 3.0], (5, 3))
    given, y, large = device.array("x", x), device.empty((5, 3)), device.empty((5,), np.uint8)
    assert given.strides[0] == 0
    device.build(program("", [SCALE])).run("scale", 5, given, -1.0, 3, y, large)
    np.testing.assert_array_equal(device.numpy(y), -x)
    np.testing.assert_array_equal(given.numpy(), x)


def test_threads_share_a_module(device):
    made = device.build(program("", [SCALE]))

    def scaled(factor):
        y = device.empty((100, 2))
        x = device.array("x", np.ones((100, 2)))
        made.run("scale", 100, x, factor, 2, y, device.empty((100,), np.uint8))
        return device.numpy(y)

    with ThreadPoolExecutor(4) as pool:
        for factor, y in enumerate(pool.map(scaled, map(float, range(20)))):
            np.testing.assert_array_equal(y, factor)


# ---------------------------------------------------------------------------- arrays


@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (5, 3), (4, 3, 2)])
def test_arrays_come_back(device, shape):
    x = np.random.default_rng(0).normal(size=shape)
    made = device.array("x", x)
    assert made.shape == shape
    assert not shape or made.strides[0] == 1  # neighbouring robots are neighbours in memory
    np.testing.assert_array_equal(device.numpy(made), x)
    np.testing.assert_array_equal(np.asarray(made), x)
    np.testing.assert_array_equal(np.from_dlpack(made, device="cpu"), x)
    assert device.array("x", made) is made
    assert device.empty(shape).strides == made.strides


@pytest.mark.parametrize("versions", [False, True])
def test_arrays_of_others_are_not_copied(device, versions):
    whole = np.zeros((6, 8))
    part = whole[1::2, ::-3]  # with gaps, and backwards
    y = device.array("y", Other(part, versions=versions))
    x = device.array("x", np.arange(9.0).reshape(3, 3))
    made = device.build(program("", [SCALE]))
    made.run("scale", 3, x, 2.0, 3, y, device.empty((3,), np.uint8))
    np.testing.assert_array_equal(part, 2.0 * np.arange(9.0).reshape(3, 3))
    assert np.count_nonzero(whole) == 8
    np.testing.assert_array_equal(device.numpy(y), part)
    marks = device.array("marks", Other(np.array([True, False])), np.uint8)
    np.testing.assert_array_equal(device.numpy(marks), [1, 0])


@pytest.mark.parametrize("versions", [False, True])
def test_others_take_arrays_without_a_copy(device, pretended, versions):
    made = device.array("x", np.arange(6.0).reshape(2, 3))
    taken = np.from_dlpack(Relabelled(made, versions))
    np.testing.assert_array_equal(taken, device.numpy(made))
    assert taken.ctypes.data == made.address
    capsule = made.__dlpack__(max_version=(1, 0) if versions else None)
    del made, capsule  # what nobody took is given back; what NumPy took is kept
    gc.collect()
    assert pretended[1].bytes_in_use() > 0
    np.testing.assert_array_equal(taken, np.arange(6.0).reshape(2, 3))


def test_numpy_says_that_it_cannot_read_the_memory_of_a_gpu(device):
    """The capsule ends while the error is on its way."""
    made = device.array("x", np.arange(6.0))
    with pytest.raises(RuntimeError, match="Unsupported device"):
        np.from_dlpack(made)


def test_an_array_of_others_is_given_back_once(device):
    class Noted(np.ndarray):
        gone = 0

        def __del__(self):
            Noted.gone += 1

    x = np.zeros(4).view(Noted)
    start = Noted.gone
    taken = device.array("x", Other(x))
    del x
    gc.collect()
    assert Noted.gone == start
    del taken
    gc.collect()
    assert Noted.gone == start + 1


@pytest.mark.parametrize(
    ("value", "dtype", "told"),
    [
        ("three", float, "x must be an array of numbers"),
        (
            Other(np.zeros(3, np.float32)),
            np.float64,
            "of float64 on the GPU; it is of float32",
        ),
        (Other(np.zeros(3)), np.uint8, "of uint8 on the GPU; it is of float64"),
        (Other(np.zeros(3), ordinal=1), np.float64, "x is on GPU 1, and this is GPU 0"),
        (Other(None), np.float64, "x cannot be exchanged by DLPack: 'NoneType'"),
    ],
)
def test_arrays_that_are_none(device, value, dtype, told):
    with pytest.raises(hc.InputError, match=told):
        device.array("x", value, dtype)


def test_what_dlpack_asks_and_cannot_have(device):
    made = device.empty((2,))
    for more in {"copy": True}, {"dl_device": (GPU, 1)}, {"dl_device": (1, 0), "copy": False}:
        with pytest.raises(BufferError, match="given as it is"):
            made.__dlpack__(**more)
    with pytest.raises(ValueError, match="copied for NumPy"):
        np.array(made, copy=False)


# ---------------------------------------------------------------------------- what goes wrong


def test_too_many_robots(device):
    kept = device.empty((1000, 8))
    with pytest.raises(
        hc.HoloctlError, match=r"1,0\d\d\.\d MiB of 1,024\.0 MiB free, .* 7,629\.4 MiB"
    ):
        device.empty((1_000_000_000,))
    assert device.numpy(kept).shape == (1000, 8)


@pytest.mark.parametrize(
    ("function", "code", "told"),
    [
        ("cuLaunchKernel", 2, "MiB free, too little to start scale, which has a stack"),
        ("cuLaunchKernel", 1, "could not start scale.*: CUDA_ERROR_OF_THE_TESTS: as told"),
        ("cuCtxSynchronize", 700, "run the kernel scale: CUDA_ERROR_ILLEGAL_ADDRESS.*start anew"),
        ("cuModuleLoadData", 209, "pretended GPU 0, for CUDA 12, cannot load .*newer driver"),
        ("cuModuleLoadData", 3, "could not load the kernels"),
    ],
)
def test_a_driver_that_fails(device, pretended, function, code, told):
    pretended[1].fail_next(function.encode(), code)
    y, large = device.empty((3, 1)), device.empty((3,), np.uint8)
    with pytest.raises(hc.HoloctlError, match=told):
        device.build(program("", [SCALE])).run("scale", 3, y, 1.0, 1, y, large)
    device.build(program("", [SCALE])).run("scale", 3, y, 1.0, 1, y, large)


def test_a_kernel_that_is_none(device):
    wrong = Kernel("wrong", (), "  undeclared(k);")
    with pytest.raises(hc.HoloctlError, match=r"NVRTC_ERROR_COMPILATION.*undeclared"):
        device.build(program("", [wrong]))
    with pytest.raises(hc.HoloctlError, match="find the kernel other"):
        device.build(program("", [SCALE])).run("other", 1)


def test_kernels_are_compiled_once(device, cache):
    wide = replace(SCALE, name="once")
    before = set(cache.iterdir())
    device.build(program("", [wide]))
    made = set(cache.iterdir()) - before
    times = {path: path.stat().st_mtime_ns for path in made}
    device.build(program("", [wide]))
    assert {x.suffix for x in made} == {".cubin", ".sha256"}
    assert times == {path: path.stat().st_mtime_ns for path in set(cache.iterdir()) - before}


def test_what_is_missing(pretended, monkeypatch):
    monkeypatch.setenv("HOLOCTL_CUDA", str(pretended[0]))
    with pytest.raises(hc.InputError, match="there is no GPU 5: the driver finds 1"):
        on_cuda(5)
    pretended[1].set_gpus(0)
    with pytest.raises(hc.InputError, match="there is no GPU 7: the driver finds 0"):
        on_cuda(7)
    pretended[1].set_gpus(1)
    with pytest.raises(hc.InputError, match="ordinal must be a whole number"):
        on_cuda(-1)
    monkeypatch.setenv("HOLOCTL_CUDA", "nowhere.so")
    with pytest.raises(hc.InputError, match=r"no driver for it .*nowhere\.so.*HOLOCTL_CUDA"):
        on_cuda()
    monkeypatch.setenv("HOLOCTL_NVRTC", "nowhere.so")
    with pytest.raises(hc.InputError, match=r"'nowhere\.so'.*pip install 'holoctl\[cuda\]'"):
        machine_code_of(program("", []), H200)


def test_a_gpu_that_is_older_than_the_compiler(device):
    old = replace(device, gpu=replace(device.gpu, architecture=61))
    with pytest.raises(hc.HoloctlError, match=r"capability 7\.0 and later; this one has 6\.1"):
        old.build(program("", [SCALE]))


# ---------------------------------------------------------------------------- NVIDIA's compiler


@pytest.fixture
def nvrtc(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLOCTL_CACHE", str(tmp_path))
    try:
        machine_code_of(Program("int nothing;"), A100)
    except hc.InputError:
        pytest.skip("no NVRTC is here: pip install 'holoctl[cuda]'")


def exported(folder, name):
    """The law and the plant of a robot as `export_c` writes them, as two kernels."""
    mech = robot(name)
    hc.export_c(controller(name), folder, name="robot", plant=True)
    files = {x.name: x.read_text("utf-8") for x in folder.glob("*.[ch]") if "test" not in x.name}
    laws = "".join(f'#include "holoctl_robot{x}"\n' for x in (".h", ".c", "_plant.h", "_plant.c"))
    state = (
        f"  double x[{mech.nq}], rates[{mech.nv}], w[{mech.nu}];\n  load(q, k, 0, {mech.nq}, x);\n"
        f"  load(v, k, 0, {mech.nv}, rates);\n"
    )
    law = (
        f"{state}  double r[{mech.nv}] = {{0.0}};\n  holoctl_robot c;\n  holoctl_robot_init(&c);\n"
        f"  holoctl_robot_torque(&c, x, rates, r, r, r, w);\n  store(w, {mech.nu}, u, k, 0);"
    )
    plant = (
        f"{state}  load(u, k, 0, {mech.nu}, w);\n  holoctl_robot_plant_step(x, rates, w, 1e-3);\n"
        f"  store(x, {mech.nq}, q, k, 0);\n  store(rates, {mech.nv}, v, k, 0);"
    )
    names = (("table", "q"), ("table", "v"), ("table", "u"))
    return program(laws, [Kernel("law", names, law), Kernel("plant", names, plant)], files)


def spilled(found):
    return {x: y for x, y in found.items() if y.spill_stores > SPILLS}


def test_a_law_keeps_its_numbers_in_registers(nvrtc):
    found = thread_memory(torques("five_bar"), H200)
    assert found.keys() >= {"torques"}
    assert found["torques"].registers > 50
    assert spilled(found) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["five_bar", "delta", "stewart"])
def test_exported_c_keeps_its_numbers_in_registers(nvrtc, tmp_path, name):
    found = thread_memory(exported(tmp_path, name), H200)
    assert {"law", "plant", "robot_plant_motion"} <= found.keys()
    assert all(found[x].registers and found[x].stack > 100 for x in ("law", "plant"))
    assert spilled(found) == {}


def test_machine_code_or_ptx(nvrtc):
    """PTX for a GPU that came after the compiler, for its driver to compile."""
    made = program("", [SCALE])
    assert machine_code_of(made, H200)[:4] == b"\x7fELF"
    assert b".entry scale" in machine_code_of(made, 990)
    with pytest.raises(hc.HoloctlError, match="undeclared"):
        machine_code_of(program("", [Kernel("wrong", (), "  undeclared(k);")]), H200)


def test_an_nvrtc_that_the_driver_does_not_know(nvrtc):
    with pytest.raises(hc.InputError, match="is newer than the driver, which knows CUDA 1"):
        machine_code_of(Program("int nothing;"), A100, newest=1)


# ---------------------------------------------------------------------------- a GPU


def test_a_law_on_a_gpu(tmp_path):
    """The exported law and its plant, on a GPU and on the cores."""
    try:
        device = on_cuda()
        made = exported(tmp_path, "five_bar")
        module = device.build(made)
    except hc.InputError as error:
        pytest.skip(str(error))
    found = []
    for on, kernels in (device, module), (on_cores(1), on_cores(1).build(made)):
        q, v = (on.array("state", x) for x in states_of("five_bar"))
        u = on.empty((q.shape[0], 2))
        for kernel in "law", "plant":
            kernels.run(kernel, q.shape[0], q, v, u)
        found.append([on.numpy(x) for x in (q, v, u)])
    for x, y in zip(*found, strict=True):
        assert np.abs(y).max() > 0.1
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10)
