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
from holoctl.codegen.compiled.functions import law_of
from holoctl.codegen.devices import driver
from holoctl.codegen.devices.batch_kernels import batch_program
from holoctl.codegen.devices.cuda import on_cuda
from holoctl.codegen.devices.kernels import Kernel, Program, program
from holoctl.codegen.devices.nvrtc import machine_code_of, thread_memory
from holoctl.codegen.devices.rollout_program import rollout_program
from holoctl.codegen.exported.export import law_library
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


def law(name):
    """Inverse dynamics as a kernel of many robots."""
    f = inverse_function(symbolic(mechanism(name), shared_partition(name)))
    return batch_program(batched_tanh_exp(c_function(f)), law_of(f), {})


def test_a_law_gives_the_numbers_of_the_cores(device):
    """Also where an input is not finite, and where all robots have the same target."""
    mech = mechanism("five_bar")
    Q, V = (np.array(x) for x in zip(*closed_states("five_bar")[:100], strict=True))
    Q[7, 1] = np.nan
    target = np.array([1.0, -2.0])
    many = [hc.compile(mech, ["inverse_dynamics"], device=x) for x in ("cuda", "cpu")]
    (u, status), (expected, right) = (x.inverse_dynamics(Q, V, target) for x in many)
    assert np.nanmax(np.abs(u)) > 0.1
    assert np.flatnonzero(status).tolist() == [7]
    np.testing.assert_allclose(u, expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(status, right)
    there = many[0].inverse_dynamics(device.array("q", Q), Other(V), target)
    assert there[0].strides == (1, len(Q))
    here = np.empty_like(u)
    assert many[0].inverse_dynamics(Q, V, target, out=here)[0] is here
    np.testing.assert_array_equal(here, u)
    place = device.empty(u.shape)
    assert many[0].inverse_dynamics(Q, V, target, out=place)[0] is place
    for found in there[0], place:
        np.testing.assert_array_equal(device.numpy(found), u)
    assert many[0].describe(there[1]) == many[1].describe(right)


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


def test_axes_have_names(device):
    """Entries that all robots share, and one number for each robot in the place of an entry."""
    x, y = device.array("x", np.arange(3.0)), device.empty((3, 5))
    large = device.empty((5,), np.uint8)
    made = device.build(program("", [SCALE]))
    made.run("scale", 5, (x, ("entry",)), 2.0, 3, (y, ("entry", "robot")), large)
    np.testing.assert_array_equal(device.numpy(y), np.repeat(2.0 * np.arange(3.0), 5).reshape(3, 5))


@pytest.mark.slow
def test_rollouts_are_those_of_the_cores(device):
    rollouts_agree()
    mech = robot("five_bar")
    q, v = hc.assemble(mech)
    robots = hc.Rollouts(mech, dt=1e-3, device="cuda")
    there = robots.run(device.array("q", q), v, np.zeros((3, 10, 2)))
    assert type(there.q) is type(device.empty((1,)))  # as an input was
    np.testing.assert_array_equal(there.q.numpy(), robots.run(q, v, np.zeros((3, 10, 2))).q)


def rollouts_agree():
    """With noise of sensors, and gains of each robot."""
    controlled = controller("five_bar")
    mech, sensors = controlled.mech, hc.Sensors(noise=(1e-4, 1e-3))
    q, v = hc.assemble(mech)
    reference = mech.motor_positions(q) + 0.01, np.zeros(mech.nu), np.zeros(mech.nu)
    gains, found = 200.0 + 100.0 * np.arange(6.0).reshape(3, 2), []
    for name in "cuda", "cpu":
        robots = hc.Rollouts(controlled, dt=1e-3, sensors=sensors, device=name, workers=1)
        found.append(
            robots.run(q, v, *reference, ticks=30, every=10, seed=3, controller={"kp": gains})
        )
    assert found[0].status.tolist() == [0, 0, 0]
    assert np.abs(found[0].q - found[0].q[:1]).max() > 1e-5
    for x in "quv":
        there, here = (getattr(run, x) for run in found)
        np.testing.assert_allclose(there, here, rtol=1e-9, atol=1e-9)


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
        ("three", float, "x must be an array of real numbers"),
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


def spilled(found):
    return {x: y for x, y in found.items() if y.spill_stores > SPILLS}


def test_a_law_keeps_its_numbers_in_registers(nvrtc):
    found = thread_memory(law("five_bar"), H200)
    assert found.keys() >= {"inverse_dynamics_batch"}
    assert found["inverse_dynamics_batch"].registers > 50
    assert spilled(found) == {}


@pytest.mark.slow
@pytest.mark.parametrize("measured", ["all", None], ids=["exact states", "sensors of the motors"])
@pytest.mark.parametrize("name", ["five_bar", "stewart"])
def test_rollouts_keep_their_numbers_in_registers(nvrtc, name, measured):
    """The exported C of a controller and of its plant."""
    lib = law_library(controller(name), plant=True, measured=measured)
    sensors = None if measured else lib.laws.closed_state.sensing.sensors
    found = thread_memory(rollout_program(lib, sensors).program, H200)
    assert {"prepare", "rollout", f"{name}_plant_motion"} <= found.keys()
    assert all(found[x].registers and found[x].stack > 100 for x in ("prepare", "rollout"))
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


def test_rollouts_on_a_gpu():
    try:
        on_cuda().build(program("", [SCALE]))
    except hc.InputError as error:
        pytest.skip(str(error))
    rollouts_agree()


@pytest.mark.slow
def test_a_thousand_steps_agree_with_the_cores(device):
    """Of two compilers, so with other roundings; the motion is regular, and its loop damped."""
    controlled = controller("five_bar")
    mech = controlled.mech
    q, v = hc.assemble(mech)
    t = 1e-3 * np.arange(1000.0)[:, None]
    size, home = np.array([0.3, -0.2]), mech.motor_positions(q)
    reference = (
        home + size * (1.0 - np.cos(6.0 * t)), 6.0 * size * np.sin(6.0 * t),
        36.0 * size * np.cos(6.0 * t),
    )  # fmt: skip
    found = [
        hc.Rollouts(controlled, dt=1e-3, device=name).run(q, v, *reference, every=100)
        for name in ("cuda", "cpu")
    ]
    assert found[0].status.tolist() == found[1].status.tolist() == [0]
    assert np.abs(found[0].q - found[0].q[0, 0]).max() > 0.3
    for x in "qv":
        there, here = (getattr(run, x) for run in found)
        assert np.abs(there - here).max() < 1e-12
