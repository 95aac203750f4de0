// SPDX-License-Identifier: GPL-2.0-only
// Stands in for zlib, of which OSystem::openROM() calls three functions: they read a MemoryFile.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "memory_file.h"

using gzFile = const MemoryFile*;

inline gzFile gzopen(const char* name, const char*) {
  return reinterpret_cast<gzFile>(static_cast<uintptr_t>(std::strtoul(name, nullptr, 10)));
}

inline int gzread(gzFile file, void* target, unsigned room) {
  const uint32_t size = std::min<uint32_t>(file->size, room);
  std::memcpy(target, file->data, size);
  return static_cast<int>(size);
}

inline int gzclose(gzFile) { return 0; }
