"""Matmul FLOPs of a traced function, and the machine's own GEMM rate to hold them against."""

import math
import time

import jax
from jax.extend.core import jaxprs_in_params


def matmul_flops(function, *args) -> int:
    """2 · m · n · k of every dot in the traced program, loops counted as often as they run."""
    return count(jax.make_jaxpr(function)(*args).jaxpr)


def count(jaxpr) -> int:
    total = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "dot_general":
            (contracting, _), _ = eqn.params["dimension_numbers"]
            left = eqn.invars[0].aval.shape
            total += 2 * math.prod(eqn.outvars[0].aval.shape) * math.prod(left[i] for i in contracting)
        times = eqn.params.get("length", 1) if eqn.primitive.name == "scan" else 1
        for inner in jaxprs_in_params(eqn.params):
            total += times * count(inner)
    return total


def gemm(size: int = 256, repeats: int = 200):
    """A function that runs ``repeats`` matmuls of ``size``³ one after the other, how many, and the FLOPs of each."""
    left, right = jax.random.normal(jax.random.key(0), (2, size, size)) / math.sqrt(size)

    @jax.jit
    def chain(x):
        return jax.lax.scan(lambda x, _: (x @ right, None), x, None, length=repeats)[0]

    return lambda: jax.block_until_ready(chain(left)), repeats, 2 * size**3


def seconds(function) -> float:
    start = time.perf_counter()
    jax.block_until_ready(function())
    return time.perf_counter() - start


def gemm_rate(multiply, repeats: int, flops: int) -> float:
    """FLOP/s of a function of ``gemm`` now."""
    return repeats * flops / seconds(multiply)
