// SPDX-License-Identifier: GPL-2.0-only
// A file that lies in memory. OSystem opens a cartridge by its name, with zlib; here the name says where the bytes
// are, so that no game needs a file system, or a pointer that it would share with the others.

#pragma once

#include <cstdint>
#include <string>

struct MemoryFile {
  const uint8_t* data;
  uint32_t size;

  // Holds while this object does.
  std::string name() const { return std::to_string(reinterpret_cast<uintptr_t>(this)); }
};
