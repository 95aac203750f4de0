// SPDX-License-Identifier: GPL-2.0-only
#include "game.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "state.h"

Game::Game(Rom rom, float sticky) : rom_(std::move(rom)), sticky_(sticky) {}

bool Game::load(int32_t seed) {
  auto fresh = Machine::start(rom_, sticky_, seed);
  if (!fresh) return false;
  machine_ = std::move(fresh);
  played_ = 0;
  if (plain_size_ == 0) plain_size_ = static_cast<uint32_t>(machine_->save(false).size());
  return true;
}

void Game::reset() {
  machine_->reset();
  played_ = 0;
}

void Game::play(ale::Action action, int32_t frames) {
  reward_ = 0;
  played_ = 0;
  while (played_ < frames && !machine_->over()) {
    reward_ += machine_->act(action);
    keep_frame();
    ++played_;
    if (machine_->over()) break;
    if (played_ == frames - 1) {
      look_at(before());
    } else if (played_ == frames) {
      look_at(pooled());
    }
  }
  // Where the game ended early, this pools again what had been pooled.
  std::transform(pooled(), pooled() + Machine::kPixels, before(), pooled(),
                 [](uint8_t a, uint8_t b) { return std::max(a, b); });
}

void Game::look() {
  std::fill_n(before(), Machine::kPixels, uint8_t{0});
  look_at(pooled());
}

void Game::keep_frame() {
  std::memcpy(kept_.data() + played_ % kFramesKept * Machine::kPixels, machine_->colours(), Machine::kPixels);
}

const uint8_t* Game::small() {
  area_resize(pooled(), small_);
  return small_.data();
}

const uint8_t* Game::screen() {
  machine_->to_rgba(machine_->colours(), rgba_.data());
  return reinterpret_cast<const uint8_t*>(rgba_.data());
}

const uint8_t* Game::paint(int32_t index) {
  if (index < std::max(0, played_ - kFramesKept) || index >= played_) return nullptr;
  machine_->to_rgba(kept_.data() + index % kFramesKept * Machine::kPixels, rgba_.data());
  return reinterpret_cast<const uint8_t*>(rgba_.data());
}

uint32_t Game::state_size(bool rng) const { return sealed_size(plain_size_, rng); }

const uint8_t* Game::save(bool rng) {
  state_ = seal(machine_->save(rng), rng, state_size(rng));
  return state_.data();
}

bool Game::restore(const uint8_t* state, bool rng) {
  const auto inner = unseal(state, state_size(rng), rng);
  if (!inner) return false;
  machine_->restore(*inner);
  played_ = 0;
  return true;
}
