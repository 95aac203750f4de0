// SPDX-License-Identifier: GPL-2.0-only
// One game: the console, and what an agent and a painter look at.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "machine.h"
#include "resize.h"

class Game {
 public:
  static constexpr int kFramesKept = 16;

  Game(Rom rom, float sticky);

  // False where the emulator refuses the cartridge; a running game then goes on.
  bool load(int32_t seed);
  void reset();

  // Plays `action` for `frames` frames, or until the game is over. The grey screens of the last two of the frames that
  // were wanted are kept and pooled. The frame that ends a game is not looked at: what was seen before stays. That is
  // what AtariVectorEnv of ale_py does, in which the model was trained.
  void play(ale::Action action, int32_t frames);
  void look();

  int32_t reward() const { return reward_; }
  int32_t played() const { return played_; }
  const Machine& machine() const { return *machine_; }

  const uint8_t* screens() const { return grey_.data(); }
  const uint8_t* small();
  const uint8_t* screen();
  const uint8_t* paint(int32_t index);

  uint32_t state_size(bool rng) const;
  const uint8_t* save(bool rng);
  // False for bytes that no save() of this kind has made, or that are damaged; the game then goes on.
  bool restore(const uint8_t* state, bool rng);

 private:
  uint8_t* before() { return grey_.data(); }
  uint8_t* pooled() { return grey_.data() + Machine::kPixels; }
  void look_at(uint8_t* grey) { machine_->to_grey(machine_->colours(), grey); }
  void keep_frame();

  const Rom rom_;
  const float sticky_;
  std::unique_ptr<Machine> machine_;
  int32_t reward_ = 0;
  int32_t played_ = 0;
  uint32_t plain_size_ = 0;  // of ALE's state without the generator
  std::array<uint8_t, 2 * Machine::kPixels> grey_{};
  std::array<uint8_t, kFramesKept * Machine::kPixels> kept_{};
  std::array<uint32_t, Machine::kPixels> rgba_{};
  SmallScreen small_{};
  std::vector<uint8_t> state_;
};
