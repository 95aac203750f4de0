// SPDX-License-Identifier: GPL-2.0-only
// Saved states in an envelope. ALE reads a state without checking it, and throws at the first surprise, which here is
// a trap: so nothing may reach it that did not come from it. The envelope has the same size for every state of a kind,
// though the random generator's is text, whose length varies.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// Bytes of an envelope around a state whose part without the generator takes `plain_size`.
uint32_t sealed_size(uint32_t plain_size, bool rng);
std::vector<uint8_t> seal(const std::string& inner, bool rng, uint32_t size);
// Nothing for bytes that `seal` has not made with this `rng` and `size`.
std::optional<std::string> unseal(const uint8_t* envelope, uint32_t size, bool rng);
