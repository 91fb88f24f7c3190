"""What sweeps of the tests call: functions that a worker can import."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

import holoctl as hc


def squared(x):
    return x * x


def torque(mech, part, state):
    return hc.inverse_dynamics(mech, *state, partition=part).u


def killing(x, victim=37):
    """Ends its process at one item, as the kernel does where memory is short."""
    if x == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def raised(error):
    """Raises what it is given; returns what is no error."""
    if isinstance(error, BaseException):
        raise error
    return error


class Stubborn(Exception):
    """An error that pickles, and then does not unpickle: it wants two arguments."""

    def __init__(self, what, why):
        super().__init__(f"{what}: {why}")


class OneWay:
    """What pickles and does not unpickle, or not even that."""

    def __init__(self, there):
        self.there = there

    def __reduce__(self):
        if not self.there:
            raise TypeError("not to be pickled")
        return _refused, ()


def _refused():
    raise RuntimeError("not to be unpickled")


def troubled(what):
    """Trouble of every kind."""
    if what == "local":

        class Local(Exception):
            pass

        raise Local("of a class that nobody finds")
    match what:
        case "stubborn":
            raise Stubborn("this", "that")
        case "exit":
            sys.exit(3)
        case "generator":
            return (x for x in "abc")
        case "one way":
            return OneWay(there=True)
        case "returned":
            return ValueError("a value like any other")
    return what


class Noted:
    """A function that notes in a folder by whom it was unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __setstate__(self, state):
        self.__dict__ = state
        with (Path(self.folder) / "unpickled").open("a") as file:
            file.write(f"{os.getpid()}\n")

    def __call__(self, x):
        return os.getpid()


def threads(_):
    """Of BLAS in a worker; and a random number, which no other worker draws."""
    of_blas = {x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas"}
    time.sleep(0.02)  # so that the other worker gets some
    return os.getpid(), of_blas, np.random.random()  # noqa: NPY002


def slept(seconds):
    time.sleep(seconds)
    return os.getpid()
