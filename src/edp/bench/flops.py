"""Matmul FLOPs of a traced function, and the GEMM rate of the machine to compare them with."""

import math
import time

import jax
from jax.extend.core import jaxprs_in_params


def matmul_flops(function, *args) -> int:
    """Count 2 · m · n · k for every dot in the traced program; a loop counts once for each iteration."""
    return jaxpr_flops(jax.make_jaxpr(function)(*args).jaxpr)


def jaxpr_flops(jaxpr) -> int:
    total = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "dot_general":
            (contracting, _), _ = eqn.params["dimension_numbers"]
            left = eqn.invars[0].aval.shape
            total += 2 * math.prod(eqn.outvars[0].aval.shape) * math.prod(left[i] for i in contracting)
        times = eqn.params.get("length", 1) if eqn.primitive.name == "scan" else 1
        for inner in jaxprs_in_params(eqn.params):
            total += times * jaxpr_flops(inner)
    return total


def gemm(size: int = 256, repeats: int = 200):
    """Return a function that runs ``repeats`` matmuls of ``size``³ in sequence, ``repeats``, and the FLOPs of each."""
    left, right = jax.random.normal(jax.random.key(0), (2, size, size)) / math.sqrt(size)

    @jax.jit
    def chain(x):
        return jax.lax.scan(lambda x, _: (x @ right, None), x, None, length=repeats)[0]

    return lambda: jax.block_until_ready(chain(left)), repeats, 2 * size**3


def time_call(function) -> float:
    """Measure one call, until its result is ready."""
    start = time.perf_counter()
    jax.block_until_ready(function())
    return time.perf_counter() - start


def gemm_rate(multiply, repeats: int, flops: int) -> float:
    """Measure the FLOP/s of a function that ``gemm`` made."""
    return repeats * flops / time_call(multiply)
