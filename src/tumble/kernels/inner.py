"""How functions are compiled that only other compiled functions call: lowered, not optimised, without machine code.

By default Numba links, optimises and emits machine code for a function's whole closure at every level of calls, so a
formula ten calls deep is worked on ten times. Here the closure is handed up as it is, and the kernel that a program
calls is optimised once, with everything in it. Nothing is left out: the optimiser sees the same code, and without
contraction or reassociation it gives the same bits.
"""

from __future__ import annotations

import ctypes
from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

__all__ = ["InnerCompiler", "with_quick_flags"]


class _InnerLibrary(JITCodeLibrary):
    """Code that waits for the kernel that it is linked into."""

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True


@ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
def _no_entry(_closure: Any, _arguments: Any, _keywords: Any) -> None:
    """What stands where a compiled function has its entry from Python; the dispatcher of `jit` never calls it."""
    raise SystemError("a function without machine code was called")


_NO_ENTRY = ctypes.cast(_no_entry, ctypes.c_void_p).value


def _get_no_executable(library: Any, description: Any, environment: Any) -> Any:
    """An entry that identifies the function to those that call it."""
    name = description.qualname.split(".")[-1]
    return _dynfunc.make_function(
        description.lookup_module(), name, "without machine code", _NO_ENTRY, environment, (library,)
    )


@register_pass(mutates_CFG=True, analysis_only=False)
class _InnerLowering(NativeLowering):
    _name = "inner_lowering"

    def run_pass(self, state: Any) -> bool:
        target = state.targetctx
        state.library = _InnerLibrary(target.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        target.get_executable = _get_no_executable  # on the instance, for this call (compiling is locked)
        try:
            return super().run_pass(state)
        finally:
            del target.get_executable


class InnerCompiler(CompilerBase):
    """Numba's own compiler with another last stage."""

    def define_pipelines(self) -> list[Any]:
        """The passes."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [(_InnerLowering if kind is NativeLowering else kind, words) for kind, words in passes.passes]
        passes.finalize()
        return [passes]


class _QuickFlags(Flags):
    """The options of a compilation. Numba compares and hashes them each time it looks for the meaning of an operator,
    and asks for each of twenty by its name; the values are the same."""

    __slots__ = ()

    def values(self) -> dict[str, Any]:
        return {**_DEFAULTS, **self._values}

    def __hash__(self) -> int:  # of the names, as that of Numba
        return _HASH


_DEFAULTS = {name: option.default for name, option in Flags.options.items()}
_HASH = hash(Flags())


def with_quick_flags(dispatcher: Any) -> Any:
    """The dispatcher, which compiles with `_QuickFlags`."""
    dispatcher._compiler._customize_flags = _QuickFlags
    return dispatcher
