"""Contexts: the threads and devices that do the work. Equal settings share a context; a forked child makes its own."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from typing import Any, Dict, Optional, Tuple

from ptxkit import _c, _errors

POLICIES = {"automatic": 0, "cpu": 1, "gpu": 2, "mixed": 3}


def _destroy(handle: int, process: int) -> None:
    if process == os.getpid():
        _c.lib().ptxkit_context_destroy(handle)


class Context:
    """A ptxkit_context, made when it is first used in a process."""

    def __init__(self, policy: str, threads: int) -> None:
        self._policy, self._threads = policy, threads
        self._process = 0
        self._handle = 0
        self._end: Optional[Any] = None

    def handle(self) -> int:
        if self._process != os.getpid():
            with _lock:
                if self._process != os.getpid():
                    self._create()
        return self._handle

    def _create(self) -> None:
        options = _c.ContextOptions(policy=POLICIES[self._policy], cpu_threads=self._threads)
        handle = ctypes.c_void_p()
        _c.check(_c.lib().ptxkit_context_create(ctypes.byref(options), ctypes.byref(handle)))
        if self._end is not None:
            self._end.detach()  # of the process that this one was forked from
        self._handle = handle.value or 0
        self._end = weakref.finalize(self, _destroy, self._handle, os.getpid())
        self._end.atexit = False  # the end of the process ends the threads
        self._process = os.getpid()

    def describe(self) -> str:
        text = ctypes.c_void_p()
        _c.check(_c.lib().ptxkit_context_describe(self.handle(), ctypes.byref(text)))
        return _c.take_string(text)


_lock = threading.RLock()
_shared: weakref.WeakValueDictionary[Tuple[str, int], Context] = weakref.WeakValueDictionary()
_default: Dict[str, Context] = {}


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def shared(policy: str = "automatic", threads: int = 0) -> Context:
    """The context of these settings. Errors: no such policy; a number of threads that is none."""
    if policy not in POLICIES:
        raise _errors.InvalidValueError(
            f"there is no policy {policy!r}, expected {', '.join(POLICIES)}", _errors.INVALID_VALUE
        )
    if not isinstance(threads, int) or isinstance(threads, bool) or not 0 <= threads < 2**16:
        raise _errors.InvalidValueError(
            f"threads is {threads!r}, expected 0 (one for each core) to 65535", _errors.INVALID_VALUE
        )
    with _lock:
        context = _shared.get((policy, threads))
        if context is None:
            context = _shared[policy, threads] = Context(policy, threads)
        return context


def default() -> Context:
    """The context of the module's functions. It lives as long as the process."""
    context = _default.get("")
    if context is None:
        context = _default.setdefault("", shared())
    return context
