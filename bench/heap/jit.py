"""Compiled with reference counts, as the first kernel was."""

import numba

__all__ = ["kernel"]

kernel = numba.njit(nogil=True, cache=True)
