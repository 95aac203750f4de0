// SPDX-License-Identifier: GPL-2.0-only
// The console with Breakout in it: ALE's OSystem and StellaEnvironment, put together as ALEInterface::loadROM does it,
// but without its file checks and its calls of exit().

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ale/common/Constants.h"

namespace ale {
class RomSettings;
class StellaEnvironment;
namespace stella {
class OSystem;
class Settings;
}  // namespace stella
}  // namespace ale

using Rom = std::vector<uint8_t>;

class Machine {
 public:
  static constexpr int kRows = 210;
  static constexpr int kColumns = 160;
  static constexpr size_t kPixels = static_cast<size_t>(kRows) * kColumns;

  // Null where the emulator refuses the cartridge; `seed` is not negative and `sticky` in [0,1].
  static std::unique_ptr<Machine> start(const Rom& rom, float sticky, int32_t seed);
  ~Machine();

  void reset();
  // Plays one frame; returns the points won in it.
  int32_t act(ale::Action action);

  int32_t lives() const;
  bool over() const;
  int32_t frame() const;
  int32_t episode_frame() const;
  const uint8_t* ram() const;

  // The present screen as numbers of colours, kPixels bytes.
  const uint8_t* colours() const;
  // Turns such a screen into grey, or into RGBA.
  void to_grey(const uint8_t* colours, uint8_t* grey) const;
  void to_rgba(const uint8_t* colours, uint32_t* rgba) const;

  // ALE's own serialisation. `restore` trusts it: what did not come from `save` can trap.
  std::string save(bool rng) const;
  void restore(const std::string& state);

 private:
  Machine();

  // In this order: each needs those above it, until the end.
  std::unique_ptr<ale::stella::OSystem> system_;
  std::unique_ptr<ale::stella::Settings> settings_;
  std::unique_ptr<ale::RomSettings> rules_;
  std::unique_ptr<ale::StellaEnvironment> environment_;
  uint32_t rgba_of_[256] = {};
};
