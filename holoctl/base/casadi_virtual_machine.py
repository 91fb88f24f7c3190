"""CasADi's virtual machine: functions of expressions at numbers, without a compiler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["virtual_machine"]


def virtual_machine(
    function: Any,
    results: Sequence[NDArray[np.float64]],
    inputs: Sequence[NDArray[np.float64]] | None = None,
    held: Sequence[NDArray[np.float64]] = (),
) -> Callable[..., None]:
    """A function that evaluates `function` and fills `results`; for one thread.

    Parameters
    ----------
    function : casadi.Function
        Inputs and outputs dense.
    results : sequence of array
        One contiguous array for each output, written to at every call. CasADi stores matrices
        column by column: the transpose of a matrix fills a row-major array with that matrix.
    inputs : sequence of array, optional
        Likewise, one array for each input, to which the arguments are copied; allocated here by
        default.
    held : sequence of array, optional
        The last inputs of `function`, which are read where they are and are no arguments.

    Returns
    -------
    function (*inputs) -> None
        Each input an array of the size of that of `function`, or a number.
    """
    buffer, evaluate = function.buffer()
    places = inputs or [np.zeros(function.numel_in(i)) for i in range(function.n_in() - len(held))]
    for i, x in enumerate([*places, *held]):
        buffer.set_arg(i, x.data)
    for i, x in enumerate(results):
        if x.size != function.nnz_out(i) or x.dtype != float or not x.flags.c_contiguous:
            raise ValueError(f"output {i} of {function} does not fit {x.dtype} {x.shape}")
        buffer.set_res(i, x.data)

    # The buffer keeps addresses only, so the function keeps the arrays alive.
    def run(*given: Any, _held: Any = (buffer, *results, *held)) -> None:
        for place, x in zip(places, given, strict=True):
            place[...] = x
        evaluate()

    return run
