"""One thread for linear algebra, while anybody asks for it."""

from __future__ import annotations

from threadpoolctl import threadpool_info, threadpool_limits

from holoctl.base.single_threaded_blas import one_thread


def counts():
    return {x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas"}


def test_the_last_one_puts_it_back_also_where_the_first_ended_first():
    with threadpool_limits(limits=2, user_api="blas"):
        before = counts()
        first, second = one_thread(), one_thread()
        first.__enter__()
        assert counts() == {1}
        second.__enter__()
        first.__exit__(None, None, None)
        assert counts() == {1}
        second.__exit__(None, None, None)
        assert counts() == before
