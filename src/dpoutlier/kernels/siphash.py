"""SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed pseudo-random function, here of two or three words of 64 bits."""

from typing import Any

import numpy as np

from dpoutlier.kernels.jit import inlined, kernel, shared

V0 = np.uint64(0x736F6D6570736575)
V1 = np.uint64(0x646F72616E646F6D)
V2 = np.uint64(0x6C7967656E657261)
V3 = np.uint64(0x7465646279746573)
LENGTH_24 = np.uint64(24 << 56)  # the last block of a message of 24 bytes
LENGTH_16 = np.uint64(16 << 56)
FINAL = np.uint64(0xFF)
WORD = np.uint64(64)
B13, B16, B17, B21, B32 = (np.uint64(bits) for bits in (13, 16, 17, 21, 32))


@inlined
def rotate(x: Any, bits: Any) -> Any:
    return (x << bits) | (x >> (WORD - bits))


@inlined
def sip_round(v0: Any, v1: Any, v2: Any, v3: Any) -> Any:
    v0 += v1
    v1 = rotate(v1, B13) ^ v0
    v0 = rotate(v0, B32)
    v2 += v3
    v3 = rotate(v3, B16) ^ v2
    v0 += v3
    v3 = rotate(v3, B21) ^ v0
    v2 += v1
    v1 = rotate(v1, B17) ^ v2
    v2 = rotate(v2, B32)
    return v0, v1, v2, v3


@inlined
def start(key0: Any, key1: Any) -> Any:
    return key0 ^ V0, key1 ^ V1, key0 ^ V2, key1 ^ V3


@inlined
def absorb(v0: Any, v1: Any, v2: Any, v3: Any, block: Any) -> Any:
    v3 ^= block
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    return v0 ^ block, v1, v2, v3


@inlined
def finish(v0: Any, v1: Any, v2: Any, v3: Any, length_block: Any) -> Any:
    v0, v1, v2, v3 = absorb(v0, v1, v2, v3, length_block)
    v2 ^= FINAL
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


@inlined
def siphash_two(key0: Any, key1: Any, first: Any, second: Any) -> Any:
    """SipHash-2-4 of the 16 bytes (first, second), little-endian, under the key (key0, key1)."""
    v0, v1, v2, v3 = start(key0, key1)
    v0, v1, v2, v3 = absorb(v0, v1, v2, v3, first)
    v0, v1, v2, v3 = absorb(v0, v1, v2, v3, second)
    return finish(v0, v1, v2, v3, LENGTH_16)


@shared
def siphash_words(key0: Any, key1: Any, first: Any, second: Any, third: Any) -> Any:
    """SipHash-2-4 of the 24 bytes (first, second, third), little-endian, under the key (key0, key1)."""
    v0, v1, v2, v3 = start(key0, key1)
    v0, v1, v2, v3 = absorb(v0, v1, v2, v3, first)
    v0, v1, v2, v3 = absorb(v0, v1, v2, v3, second)
    v0, v1, v2, v3 = absorb(v0, v1, v2, v3, third)
    return finish(v0, v1, v2, v3, LENGTH_24)


@inlined
def siphash_pairs(key0: Any, key1: Any, first: Any, second: Any, out: Any) -> None:
    """``siphash_two`` of each pair. A plain loop from 0 over whole arrays: the compiler makes vector code of it."""
    for i in range(out.shape[0]):
        out[i] = siphash_two(key0, key1, first[i], second[i])


@kernel
def stream_of_words(key: Any, first: int, second: int, out: Any) -> None:
    """Words of a public stream: SipHash-2-4 of (first, second, i)."""
    for i in range(out.shape[0]):
        out[i] = siphash_words(key[0], key[1], np.uint64(first), np.uint64(second), np.uint64(i))
