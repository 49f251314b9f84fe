"""Blocks of a pass shared among the threads.

Each thread gets the task once. It begins with the blocks of its home, a range that is the same in every pass over as
many, so that they lie in its cache, and goes on with what others have left: a thread that is held up (another job on
its core) holds up one block and not its whole share. What a block computes does not depend on who computes it. A task
built here is compiled in a fraction of the time that a `prange` takes. The threads are those of `pool`, and of Numba's
threading layer on systems for which the pool has no code.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing import signature
from numba.extending import intrinsic

from . import pool

__all__ = ["member", "run_team"]

_POINTER = ir.IntType(8).as_pointer()
_SIZE = ir.IntType(64)
_TASK = ir.FunctionType(ir.VoidType(), [_POINTER.as_pointer(), _SIZE.as_pointer(), _SIZE.as_pointer(), _POINTER])
"""The form in which a threading layer calls: places of arguments, counts, strides, data"""
_POOL_TASK = ir.FunctionType(_SIZE, [_POINTER, _POINTER])
"""For the pool, of data and homes: returns how many blocks it did"""
_WORDS = 8
"""Integers of a line of a cache. Homes are their number, and in a line of its own for each the next block of it"""

if numba.config.DISABLE_JIT:

    def member() -> int:
        """Number of the thread that works on this block, 0 for the caller's."""
        return 0

elif pool.AVAILABLE:

    @intrinsic
    def member(typing: Any) -> Any:
        """Number of the thread that works on this block, 0 for the caller's."""

        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            form = ir.FunctionType(_SIZE, [])
            return builder.call(cgutils.get_or_insert_function(builder.module, form, "tumble_member"), [])

        return signature(types.int64), generate

else:
    member = numba.get_thread_id


@intrinsic(prefer_literal=False)
def run_team(typing: Any, body: Any, blocks: Any, arguments: Any) -> Any:
    """Call body(block, *arguments) for all blocks from 0 on, in any order."""
    call = body.get_call_type(typing, (types.int64, *arguments.types), {})
    places = tuple(call.args)

    def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
        found = body.dispatcher.overloads[places]
        context.active_code_library.add_linking_library(found.library)
        given = cgutils.unpack_tuple(builder, values[2])
        given = [context.cast(builder, *item) for item in zip(given, arguments.types, places[1:])]
        one_home = [_SIZE(1), *(_SIZE(0) for _ in range(_WORDS))]  # for a caller alone
        shared = _share(builder, [*one_home, values[1], *given])
        task = _task(context, builder.module, found.fndesc, call, shared.type)
        _start(builder, task, builder.bitcast(shared, _POINTER), values[1])
        return context.get_dummy_value()

    return signature(types.void, body, types.int64, arguments), generate


def _share(builder: Any, values: list[Any]) -> Any:
    """Where all threads see the number of blocks and the arguments."""
    shared = cgutils.alloca_once(builder, ir.LiteralStructType([value.type for value in values]))
    for k, value in enumerate(values):
        builder.store(value, cgutils.gep_inbounds(builder, shared, 0, k))
    return shared


def _task(context: Any, module: Any, description: Any, call: Any, shared: Any) -> Any:
    """What each thread does: take the next block of its home, then of the others, until there is none."""
    task = ir.Function(module, _POOL_TASK if pool.AVAILABLE else _TASK, module.get_unique_name("team_task"))
    task.linkage = "internal"
    builder = ir.IRBuilder(task.append_basic_block("entry"))
    data = builder.bitcast(task.args[0 if pool.AVAILABLE else -1], shared)
    homes = builder.bitcast(task.args[1] if pool.AVAILABLE else data, _SIZE.as_pointer())
    first = _WORDS + 1
    values = [
        builder.load(cgutils.gep_inbounds(builder, data, 0, k)) for k in range(first, len(shared.pointee.elements))
    ]
    blocks, count = values[0], builder.load(homes)
    own = _SIZE(0)
    if pool.AVAILABLE:
        form = ir.FunctionType(_SIZE, [])
        number = builder.call(cgutils.get_or_insert_function(builder.module, form, "tumble_member"), [])
        own = builder.urem(number, count)
    done, visited = cgutils.alloca_once_value(builder, _SIZE(0)), cgutils.alloca_once_value(builder, _SIZE(0))
    names = ("visit", "more", "work", "leave", "end")
    visit, more, work, leave, end = (task.append_basic_block(name) for name in names)
    builder.branch(visit)
    builder.position_at_end(visit)
    home = builder.urem(builder.add(own, builder.load(visited)), count)
    limit = builder.sdiv(builder.mul(builder.add(home, _SIZE(1)), blocks), count)
    counter = builder.gep(homes, [builder.mul(builder.add(home, _SIZE(1)), _SIZE(_WORDS))])
    builder.branch(more)
    builder.position_at_end(more)
    block = builder.atomic_rmw("add", counter, _SIZE(1), "monotonic")
    builder.cbranch(builder.icmp_signed("<", block, limit), work, leave)
    builder.position_at_end(work)
    context.call_internal_no_propagate(builder, description, call, [block, *values[1:]])
    builder.store(builder.add(builder.load(done), _SIZE(1)), done)
    builder.branch(more)
    builder.position_at_end(leave)
    following = builder.add(builder.load(visited), _SIZE(1))
    builder.store(following, visited)
    builder.cbranch(builder.icmp_signed("<", following, count), visit, end)
    builder.position_at_end(end)
    if pool.AVAILABLE:
        builder.ret(builder.load(done))
    else:
        builder.ret_void()
    return task


def _start(builder: Any, task: Any, data: Any, blocks: Any) -> None:
    """Let the threads in use do the task. A single block is not worth waking the others."""
    if pool.AVAILABLE:
        form = ir.FunctionType(ir.VoidType(), [_POINTER, _POINTER, _SIZE])
        run = cgutils.get_or_insert_function(builder.module, form, "tumble_pool_run")
        builder.call(run, [builder.bitcast(task, _POINTER), data, blocks])
    else:
        _start_layer(builder, task, data, blocks)


def _start_layer(builder: Any, task: Any, data: Any, blocks: Any) -> None:
    """By Numba's threading layer, which offers one function: call a task so many times, in parallel. All threads in
    use, even for fewer blocks: the layer remembers a smaller number for the calls that follow, and OpenMP ends the
    threads it does not need and makes them anew."""
    module = builder.module
    threads = builder.call(cgutils.get_or_insert_function(module, ir.FunctionType(_SIZE, []), "get_num_threads"), [])
    counts, strides = cgutils.alloca_once(builder, _SIZE), cgutils.alloca_once_value(builder, _SIZE(0))
    places = cgutils.alloca_once_value(builder, _POINTER(None))
    single = builder.or_(builder.icmp_signed("<=", threads, _SIZE(1)), builder.icmp_signed("<=", blocks, _SIZE(1)))
    with builder.if_else(single) as (alone, together):
        with alone:
            builder.call(task, [places, counts, strides, data])
        with together:
            builder.store(threads, counts)
            form = ir.FunctionType(ir.VoidType(), [_POINTER] * 5 + [_SIZE] * 3)
            parallel_for = cgutils.get_or_insert_function(module, form, "numba_parallel_for")
            pointers = [builder.bitcast(value, _POINTER) for value in (task, places, counts, strides)]
            builder.call(parallel_for, [*pointers, data, _SIZE(0), _SIZE(1), threads])
