"""The threads that share the blocks of a pass, on Linux.

A pass is open while its caller works on it: threads that come in time take blocks, those that come late find it closed,
and the caller waits only for those that are inside. What a pass took is compared with what the caller would have needed
alone, by the blocks that it did itself. Where threads lose more than they gain, since another job holds them up in the
middle of blocks, passes are done by the caller alone for a while, each time longer, as long as it goes on. None of this
changes what a block computes.

Between passes threads spin for some microseconds, then sleep until the next one (futex). The functions are few and must
exist before the first kernel is loaded, so they are written in LLVM's language, which takes milliseconds to compile.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import math
import os
import platform
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import llvmlite.binding as llvm
import numba

from ..errors import OptionsError, message

__all__ = ["AVAILABLE", "alone_for", "most_threads", "set_threads", "start", "threads"]

_MACHINES = {"x86_64": (202, "@llvm.x86.sse2.pause()"), "aarch64": (98, "@llvm.aarch64.hint(i32 1)")}
"""Number of the system call futex, and what a waiting processor is told"""
AVAILABLE = sys.platform == "linux" and platform.machine() in _MACHINES and sys.byteorder == "little"

HOMES = 256
"""Ranges of blocks that threads begin with at most."""
SPINS = 1500
"""Looks at the gate before a thread sleeps, about 50 us."""
LOST = 2_000_000
"""Where passes took so much longer than the caller alone would have, another job holds threads up [ns]."""
WON = -2_000_000
"""What passes gained before counts against it up to here [ns]."""
ALONE = 20_000_000
"""How long passes are then done by the caller alone [ns]; doubled while it goes on, up to `ALONE_MOST`."""
ALONE_MOST = 1_000_000_000

# What all threads see. gate: number of the pass, whether it is open, how many are inside; use: threads that may take
# part in it; asleep: 1 for each thread that sleeps, 64 bytes apart; most: for a caller that has not said how many.
_CODE = """
@gate = global i64 0, align 128
@task = global ptr null, align 128
@data = global ptr null
@homes = global [HOME_WORDS x i64] zeroinitializer, align 128
@asleep = global [65536 x i32] zeroinitializer, align 128
@busy = global i32 0, align 128
@stopped = global i32 0
@most = global i64 1
@use = global i64 1
@balance = global i64 0
@alone_until = global i64 0
@alone_for = global i64 0
@key = global i32 0
@wanted = global i32 0

DECLARED
declare i64 @syscall(i64, ...)
declare i32 @clock_gettime(i32, ptr)
declare i32 @sched_yield()
declare i32 @pthread_key_create(ptr, ptr)
declare i32 @pthread_setspecific(i32, ptr)
declare ptr @pthread_getspecific(i32)

define void @prepare() {
  %done = call i32 @pthread_key_create(ptr @key, ptr null)
  %also = call i32 @pthread_key_create(ptr @wanted, ptr null)
  ret void
}

; How many threads the passes of this caller use; each caller has a number of its own.
define void @want(i64 %count) {
  %number = load i32, ptr @wanted
  %mark = inttoptr i64 %count to ptr
  %set = call i32 @pthread_setspecific(i32 %number, ptr %mark)
  ret void
}

define i64 @now() {
  %time = alloca [2 x i64]
  %done = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %place = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %place
  %scaled = mul i64 %seconds, 1000000000
  %sum = add i64 %scaled, %rest
  ret i64 %sum
}

define i64 @tumble_member() {
  %number = load i32, ptr @key
  %mine = call ptr @pthread_getspecific(i32 %number)
  %value = ptrtoint ptr %mine to i64
  ret i64 %value
}

; The caller's side: open the gate, work, close it, wait for those inside.
define void @tumble_pool_run(ptr %task, ptr %data, i64 %blocks) {
entry:
  %number_of_wanted = load i32, ptr @wanted
  %mark = call ptr @pthread_getspecific(i32 %number_of_wanted)
  %wanted = ptrtoint ptr %mark to i64
  %unsaid = icmp eq i64 %wanted, 0
  %most = load i64, ptr @most
  %use = select i1 %unsaid, i64 %most, i64 %wanted
  %single = icmp sle i64 %use, 1
  %one = icmp sle i64 %blocks, 1
  %small = or i1 %single, %one
  br i1 %small, label %alone, label %ask
ask:
  %until = load i64, ptr @alone_until
  %free = icmp eq i64 %until, 0
  br i1 %free, label %try, label %look
look:
  %time = call i64 @now()
  %early = icmp slt i64 %time, %until
  br i1 %early, label %alone, label %try
alone:
  %all = call i64 %task(ptr %data, ptr %data)
  ret void
try:
  %lock = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %got = extractvalue { i32, i1 } %lock, 1
  br i1 %got, label %open, label %alone
open:
  store ptr %task, ptr @task
  store ptr %data, ptr @data
  store atomic i64 %use, ptr @use monotonic, align 8
  ; each thread has a home, a range of blocks that it begins with, so that it finds them in its cache the next time
  %narrow = icmp slt i64 %blocks, %use
  %some = select i1 %narrow, i64 %blocks, i64 %use
  %many = icmp sgt i64 %some, HOMES
  %count = select i1 %many, i64 HOMES, i64 %some
  store i64 %count, ptr @homes
  br label %home
home:
  %h = phi i64 [ 0, %open ], [ %h_next, %home ]
  %h_blocks = mul i64 %h, %blocks
  %h_first = sdiv i64 %h_blocks, %count
  %h_next = add i64 %h, 1
  %h_place = shl i64 %h_next, 3
  %h_counter = getelementptr i64, ptr @homes, i64 %h_place
  store i64 %h_first, ptr %h_counter
  %h_more = icmp slt i64 %h_next, %count
  br i1 %h_more, label %home, label %begin_pass
begin_pass:
  %before = load atomic i64, ptr @gate monotonic, align 8
  %number = lshr i64 %before, 32
  %next = add i64 %number, 1
  %high = shl i64 %next, 32
  %opened = or i64 %high, 2147483648
  store atomic i64 %opened, ptr @gate seq_cst, align 8
  ; wake as many as there are blocks for
  %few = icmp slt i64 %blocks, %use
  %needed = select i1 %few, i64 %blocks, i64 %use
  br label %wake
wake:
  %thread = phi i64 [ 1, %begin_pass ], [ %following, %woken ]
  %more_threads = icmp slt i64 %thread, %needed
  br i1 %more_threads, label %see, label %work
see:
  %place = shl i64 %thread, 4
  %slot = getelementptr i32, ptr @asleep, i64 %place
  %sleeps = load atomic i32, ptr %slot seq_cst, align 4
  %lies = icmp ne i32 %sleeps, 0
  br i1 %lies, label %call, label %woken
call:
  store atomic i32 0, ptr %slot seq_cst, align 4
  %called = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %slot, i64 129, i64 1, i64 0, i64 0, i64 0)
  br label %woken
woken:
  %following = add i64 %thread, 1
  br label %wake
work:
  %begin = call i64 @now()
  %mine = call i64 %task(ptr %data, ptr @homes)
  %left = atomicrmw and ptr @gate, i64 -2147483649 seq_cst
  %end = call i64 @now()
  %inside = and i64 %left, 2147483647
  %none = icmp eq i64 %inside, 0
  br i1 %none, label %weigh, label %spin
spin:
  %turn = phi i64 [ 0, %work ], [ %turns, %again ]
  %state = load atomic i64, ptr @gate acquire, align 8
  %still = and i64 %state, 2147483647
  %empty = icmp eq i64 %still, 0
  br i1 %empty, label %weigh, label %pause
pause:
  call void PAUSE
  %turns = add i64 %turn, 1
  %long = icmp ugt i64 %turns, 2000
  br i1 %long, label %give, label %again
give:
  %gave = call i32 @sched_yield()
  br label %again
again:
  br label %spin
weigh:
  %after = call i64 @now()
  %took = sub i64 %after, %begin
  %worked = sub i64 %end, %begin
  %any = icmp sgt i64 %mine, 0
  br i1 %any, label %judge, label %done
judge:
  ; alone the caller would have needed its own time for all blocks
  %product = mul i64 %worked, %blocks
  %serial = sdiv i64 %product, %mine
  %loss = sub i64 %took, %serial
  %old = load i64, ptr @balance
  %sum = add i64 %old, %loss
  %low = icmp slt i64 %sum, WON
  %kept = select i1 %low, i64 WON, i64 %sum
  %bad = icmp sgt i64 %kept, LOST
  %rest = select i1 %bad, i64 0, i64 %kept
  store i64 %rest, ptr @balance
  br i1 %bad, label %punish, label %done
punish:
  ; within four times the last spell: twice as long as that
  %spell = load i64, ptr @alone_for
  %last = load i64, ptr @alone_until
  %since = sub i64 %after, %last
  %near = shl i64 %spell, 2
  %recent = icmp slt i64 %since, %near
  %double = shl i64 %spell, 1
  %chosen = select i1 %recent, i64 %double, i64 ALONE_FIRST
  %over = icmp sgt i64 %chosen, ALONE_MOST
  %new = select i1 %over, i64 ALONE_MOST, i64 %chosen
  %then = add i64 %after, %new
  store i64 %new, ptr @alone_for
  store i64 %then, ptr @alone_until
  br label %done
done:
  store atomic i32 0, ptr @busy release, align 4
  ret void
}

; A thread: take part in every pass that it finds open.
define void @serve(i64 %index) {
entry:
  %number = load i32, ptr @key
  %mark = inttoptr i64 %index to ptr
  %set = call i32 @pthread_setspecific(i32 %number, ptr %mark)
  %place = shl i64 %index, 4
  %slot = getelementptr i32, ptr @asleep, i64 %place
  %first = load atomic i64, ptr @gate acquire, align 8
  %start = lshr i64 %first, 32
  br label %watch
watch:
  %seen = phi i64 [ %start, %entry ], [ %passed, %worked ], [ %passed, %missed ], [ %seen, %slept ]
  br label %spin
spin:
  %turn = phi i64 [ 0, %watch ], [ %turns, %idle ]
  %state = load atomic i64, ptr @gate acquire, align 8
  %passed = lshr i64 %state, 32
  %new = icmp ne i64 %passed, %seen
  br i1 %new, label %check, label %idle
check:
  %bit = and i64 %state, 2147483648
  %is_open = icmp ne i64 %bit, 0
  %use = load atomic i64, ptr @use monotonic, align 8
  %room = icmp slt i64 %index, %use
  %may = and i1 %is_open, %room
  br i1 %may, label %enter, label %missed
missed:
  br label %watch
enter:
  %wanted = add i64 %state, 1
  %swap = cmpxchg ptr @gate, i64 %state, i64 %wanted acq_rel monotonic
  %got = extractvalue { i64, i1 } %swap, 1
  br i1 %got, label %work, label %retry
retry:
  br label %idle
work:
  %task = load ptr, ptr @task
  %data = load ptr, ptr @data
  %done = call i64 %task(ptr %data, ptr @homes)
  %gone = atomicrmw sub ptr @gate, i64 1 release
  br label %worked
worked:
  br label %watch
idle:
  call void PAUSE
  %turns = add i64 %turn, 1
  %long = icmp ugt i64 %turns, SPINS
  br i1 %long, label %sleep, label %spin
sleep:
  %end = load atomic i32, ptr @stopped acquire, align 4
  %over = icmp ne i32 %end, 0
  br i1 %over, label %leave, label %lie
lie:
  ; who opens a pass later sees that this one sleeps, who opened one earlier is seen here
  store atomic i32 1, ptr %slot seq_cst, align 4
  %now = load atomic i64, ptr @gate seq_cst, align 8
  %latest = lshr i64 %now, 32
  %same = icmp eq i64 %latest, %seen
  br i1 %same, label %rest, label %rise
rest:
  %called = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %slot, i64 128, i64 1, i64 0, i64 0, i64 0)
  br label %rise
rise:
  store atomic i32 0, ptr %slot seq_cst, align 4
  br label %slept
slept:
  br label %watch
leave:
  ret void
}

; Let the threads go. A pass that another caller has open is waited for; none is opened any more: @busy stays.
define void @stop(i64 %serving) {
entry:
  br label %ask
ask:
  %lock = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %got = extractvalue { i32, i1 } %lock, 1
  br i1 %got, label %begin, label %wait
wait:
  %gave = call i32 @sched_yield()
  br label %ask
begin:
  store atomic i32 1, ptr @stopped seq_cst, align 4
  %before = load atomic i64, ptr @gate monotonic, align 8
  %number = lshr i64 %before, 32
  %next = add i64 %number, 1
  %high = shl i64 %next, 32
  store atomic i64 %high, ptr @gate seq_cst, align 8
  br label %each
each:
  %thread = phi i64 [ 1, %begin ], [ %following, %wake ]
  %more = icmp sle i64 %thread, %serving
  br i1 %more, label %wake, label %done
wake:
  %place = shl i64 %thread, 4
  %slot = getelementptr i32, ptr @asleep, i64 %place
  store atomic i32 0, ptr %slot seq_cst, align 4
  %called = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %slot, i64 129, i64 1, i64 0, i64 0, i64 0)
  %following = add i64 %thread, 1
  br label %each
done:
  ret void
}
"""


class _Pool:
    """The compiled functions and how many threads serve."""

    def __init__(self) -> None:
        self.serving = 0
        """Threads beside the caller's"""
        self.ended = False
        self._lock = threading.Lock()
        self.engine: llvm.ExecutionEngine | None = None

    def load(self) -> None:
        """Compile the functions and make those that kernels call known by name."""
        number, pause = _MACHINES[platform.machine()]
        values = {
            "FUTEX": number,
            "PAUSE": pause,
            "DECLARED": "declare void " + pause.replace("i32 1", "i32"),
            "SPINS": SPINS,
            "HOME_WORDS": 8 * (HOMES + 1),
            "HOMES": HOMES,
            "LOST": LOST,
            "WON": WON,
            "ALONE_MOST": ALONE_MOST,
            "ALONE_FIRST": ALONE,
        }
        code = _CODE
        for name, value in values.items():
            code = code.replace(name, str(value))
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        module = llvm.parse_assembly(code)
        machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(opt=2, jit=True)
        self.engine = llvm.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.engine))  # threads run in it until the process is gone
        for name in ("tumble_pool_run", "tumble_member"):
            llvm.add_symbol(name, self.engine.get_function_address(name))
        self._serve = ctypes.CFUNCTYPE(None, ctypes.c_int64)(self.engine.get_function_address("serve"))
        self._stop = ctypes.CFUNCTYPE(None, ctypes.c_int64)(self.engine.get_function_address("stop"))
        self.want = ctypes.CFUNCTYPE(None, ctypes.c_int64)(self.engine.get_function_address("want"))
        ctypes.CFUNCTYPE(None)(self.engine.get_function_address("prepare"))()
        os.register_at_fork(after_in_child=self._forked)
        atexit.register(self.stop)

    def place(self, name: str, kind: type) -> ctypes._SimpleCData:
        """A variable of the code above."""
        return kind.from_address(self.engine.get_global_value_address(name))

    def use(self, count: int) -> None:
        """Start the threads that are missing for so many, the caller's among them."""
        with self._lock:  # two threads with one number would share their scratch
            if self.ended:
                return
            while self.serving < count - 1:
                index = self.serving = self.serving + 1
                thread = threading.Thread(target=self._serve, args=(index,), daemon=True, name="tumble pool")
                try:
                    thread.start()
                except RuntimeError as cause:
                    self.serving = index - 1
                    rule, remedy = "must be as many as the system gives", "Ask for fewer, or allow more (ulimit -u)."
                    raise OptionsError(message("threads", rule, f"{count}, it gave {index}", remedy)) from cause

    def stop(self) -> None:
        """Let the threads end, before the interpreter takes away what they stand on; passes that follow are done by
        their callers alone."""
        with self._lock:
            self.ended = True
            if self.serving:
                self._stop(self.serving)

    def _forked(self) -> None:
        """A forked child has the caller's thread alone."""
        for name, kind in (("gate", ctypes.c_int64), ("busy", ctypes.c_int32), ("asleep", ctypes.c_int32 * 65536)):
            ctypes.memset(self.engine.get_global_value_address(name), 0, ctypes.sizeof(kind))
        self._lock = threading.Lock()  # the other's may be held by a thread that is not here
        self.serving = 0


_pool = _Pool()
_caller = threading.local()
"""How many threads this Python thread uses; unset: all that there may be"""
if AVAILABLE:
    _pool.load()


def most_threads() -> int:
    """Threads that passes can use at most: TUMBLE_THREADS, or as many as this process may use processors."""
    text = os.environ.get("TUMBLE_THREADS")
    if text is None:
        most = int(numba.config.NUMBA_NUM_THREADS)
        return most if "NUMBA_NUM_THREADS" in os.environ else min(most, _granted())
    if not text.isdecimal() or not 1 <= int(text) <= 4096:
        rule = "must be a whole number from 1 to 4096"
        raise OptionsError(message("TUMBLE_THREADS", rule, repr(text), "Or leave it unset."))
    return int(text)


@functools.cache
def _granted() -> int:
    """Processors that the group of processes (a container, a job of a cluster) may keep busy."""
    with suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, math.ceil(int(quota) / int(period)))
    return sys.maxsize


def start() -> None:
    """Start the threads: kernels are about to be loaded, which name their functions."""
    if AVAILABLE:
        _pool.place("most", ctypes.c_int64).value = most_threads()
        _pool.use(threads())
    else:
        numba.get_num_threads()


def threads() -> int:
    """Threads that share the blocks of this caller's passes."""
    if not AVAILABLE:
        return numba.get_num_threads()
    return getattr(_caller, "threads", None) or most_threads()


def set_threads(count: int) -> int:
    """Use this many threads for the passes of this caller that follow; returns the number before."""
    before = threads()
    if not AVAILABLE:
        if count != before:
            numba.set_num_threads(count)
        return before
    if _pool.serving < count - 1:
        _pool.use(count)
    _caller.threads = count
    _pool.want(count)
    return before


def alone_for() -> float:
    """Seconds for which passes are still done by the caller alone, since another job held a thread up."""
    if not AVAILABLE:
        return 0.0
    until = _pool.place("alone_until", ctypes.c_int64).value
    return max(0.0, 1e-9 * (until - time.clock_gettime_ns(time.CLOCK_MONOTONIC)))
