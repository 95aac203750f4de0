// SPDX-License-Identifier: GPL-2.0-only
#include "state.h"

#include <cstddef>
#include <cstring>

namespace {

struct Header {
  char magic[4];
  uint32_t checksum;  // of all that follows it
  uint32_t rng;
  uint32_t length;
};

constexpr char kMagic[4] = {'A', 'L', 'E', '1'};

// libc++ writes its mt19937 as 624 numbers below 2^32 with a blank between two of them; ALE puts the length before it.
constexpr uint32_t kGeneratorBytes = 4 + 624 * 10 + 623;

// FNV-1a. It finds damage, not malice: who forges a state harms a page of their own.
uint32_t checksum_of(const uint8_t* envelope, uint32_t size) {
  uint32_t hash = 2166136261u;
  for (uint32_t i = offsetof(Header, rng); i < size; ++i) hash = (hash ^ envelope[i]) * 16777619u;
  return hash;
}

}  // namespace

uint32_t sealed_size(uint32_t plain_size, bool rng) {
  return static_cast<uint32_t>(sizeof(Header)) + plain_size + (rng ? kGeneratorBytes : 0);
}

std::vector<uint8_t> seal(const std::string& inner, bool rng, uint32_t size) {
  std::vector<uint8_t> envelope(size);
  Header header{{}, 0, rng, static_cast<uint32_t>(inner.size())};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  std::memcpy(envelope.data(), &header, sizeof header);
  std::memcpy(envelope.data() + sizeof header, inner.data(), inner.size());
  header.checksum = checksum_of(envelope.data(), size);
  std::memcpy(envelope.data(), &header, sizeof header);
  return envelope;
}

std::optional<std::string> unseal(const uint8_t* envelope, uint32_t size, bool rng) {
  Header header;
  std::memcpy(&header, envelope, sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.checksum != checksum_of(envelope, size) ||
      header.rng != rng || header.length > size - sizeof header) {
    return std::nullopt;
  }
  return std::string(reinterpret_cast<const char*>(envelope + sizeof header), header.length);
}
