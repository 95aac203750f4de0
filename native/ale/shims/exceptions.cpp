// SPDX-License-Identifier: GPL-2.0-only
// Exceptions are compiled out (-fignore-exceptions), yet a throw still calls these two: it traps.

#include <cstddef>

extern "C" void* __cxa_allocate_exception(size_t) { __builtin_trap(); }
extern "C" [[noreturn]] void __cxa_throw(void*, void*, void (*)(void*)) { __builtin_trap(); }
