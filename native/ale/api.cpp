// SPDX-License-Identifier: GPL-2.0-only
#include "api.h"

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "ale/emucore/MD5.hxx"
#include "ale/games/supported/Breakout.hpp"
#include "game.h"

namespace {

// Handles are never used twice, so that one of a closed game is known for what it is.
std::map<int32_t, std::unique_ptr<Game>> games;
int32_t last_handle = 0;

Game* find(int32_t handle) {
  const auto found = games.find(handle);
  return found == games.end() ? nullptr : found->second.get();
}

std::string md5_of(const uint8_t* bytes, uint32_t size) { return ale::stella::MD5(bytes, size); }

bool is_legal(int32_t action) {
  switch (action) {
    case ale::PLAYER_A_NOOP:
    case ale::PLAYER_A_FIRE:
    case ale::PLAYER_A_RIGHT:
    case ale::PLAYER_A_LEFT:
      return true;
    default:
      return false;
  }
}

}  // namespace

void* ale_allocate(uint32_t size) { return std::malloc(size); }
void ale_free(void* memory) { std::free(memory); }

const char* ale_md5(const uint8_t* rom, uint32_t size) {
  static std::string hex;
  hex = md5_of(rom, size);
  return hex.c_str();
}

const char* ale_wanted_md5() {
  static const ale::BreakoutSettings settings;
  return settings.md5();
}

int32_t ale_open(const uint8_t* rom, uint32_t size, float sticky, int32_t seed) {
  if (!(sticky >= 0.0f && sticky <= 1.0f)) return kBadSticky;  // NaN, too
  if (seed < 0) return kBadSeed;
  if (md5_of(rom, size) != ale_wanted_md5()) return kBadRom;
  auto game = std::make_unique<Game>(Rom(rom, rom + size), sticky);
  if (!game->load(seed)) return kCannotStart;
  games[++last_handle] = std::move(game);
  return last_handle;
}

void ale_close(int32_t handle) { games.erase(handle); }

int32_t ale_load(int32_t handle, int32_t seed) {
  Game* game = find(handle);
  if (!game) return kNoGame;
  if (seed < 0) return kBadSeed;
  return game->load(seed) ? kOk : kCannotStart;
}

int32_t ale_reset(int32_t handle) {
  Game* game = find(handle);
  if (!game) return kNoGame;
  game->reset();
  return kOk;
}

int32_t ale_play(int32_t handle, int32_t action, int32_t frames) {
  Game* game = find(handle);
  if (!game) return kNoGame;
  if (!is_legal(action)) return kBadAction;
  if (frames < 1) return kBadFrames;
  game->play(static_cast<ale::Action>(action), frames);
  return kOk;
}

int32_t ale_look(int32_t handle) {
  Game* game = find(handle);
  if (!game) return kNoGame;
  game->look();
  return kOk;
}

int32_t ale_reward(int32_t handle) {
  const Game* game = find(handle);
  return game ? game->reward() : 0;
}

int32_t ale_played(int32_t handle) {
  const Game* game = find(handle);
  return game ? game->played() : 0;
}

int32_t ale_lives(int32_t handle) {
  const Game* game = find(handle);
  return game ? game->machine().lives() : 0;
}

int32_t ale_over(int32_t handle) {
  const Game* game = find(handle);
  return game ? game->machine().over() : 0;
}

int32_t ale_frame(int32_t handle) {
  const Game* game = find(handle);
  return game ? game->machine().frame() : 0;
}

int32_t ale_episode_frame(int32_t handle) {
  const Game* game = find(handle);
  return game ? game->machine().episode_frame() : 0;
}

const uint8_t* ale_screens(int32_t handle) {
  const Game* game = find(handle);
  return game ? game->screens() : nullptr;
}

const uint8_t* ale_small(int32_t handle) {
  Game* game = find(handle);
  return game ? game->small() : nullptr;
}

const uint8_t* ale_ram(int32_t handle) {
  const Game* game = find(handle);
  return game ? game->machine().ram() : nullptr;
}

const uint8_t* ale_screen(int32_t handle) {
  Game* game = find(handle);
  return game ? game->screen() : nullptr;
}

const uint8_t* ale_paint(int32_t handle, int32_t index) {
  Game* game = find(handle);
  return game ? game->paint(index) : nullptr;
}

int32_t ale_frames_kept() { return Game::kFramesKept; }

uint32_t ale_state_size(int32_t handle, int32_t rng) {
  const Game* game = find(handle);
  return game ? game->state_size(rng != 0) : 0;
}

const uint8_t* ale_save(int32_t handle, int32_t rng) {
  Game* game = find(handle);
  return game ? game->save(rng != 0) : nullptr;
}

int32_t ale_restore(int32_t handle, const uint8_t* state, uint32_t size, int32_t rng) {
  Game* game = find(handle);
  if (!game) return kNoGame;
  if (size != game->state_size(rng != 0)) return kBadSize;
  return game->restore(state, rng != 0) ? kOk : kBadState;
}
