// SPDX-License-Identifier: GPL-2.0-only
// What the module exports: several games of Breakout at once, each behind a handle.
//
// Exceptions are compiled out, so a C++ throw ends in a trap. Therefore every argument is checked here, before the Arcade
// Learning Environment sees it, and a bad one costs a status and nothing else. Pointers that are returned belong to the
// game and hold until its next call; the memory behind them moves when it grows.

#pragma once

#include <cstdint>

#define EXPORT(type, name) extern "C" __attribute__((export_name(#name))) type name

enum Status : int32_t {
  kOk = 0,
  kNoGame = -1,      // no game has this handle
  kBadRom = -2,      // its MD5 is not Breakout's
  kBadSticky = -3,   // a probability outside [0,1], or no number
  kBadSeed = -4,     // negative
  kBadAction = -5,   // none of 0, 1, 3, 4
  kBadFrames = -6,   // fewer than one frame
  kBadSize = -7,     // a state of another size than this game's own
  kBadState = -8,    // the right size, but no state of ours, or damaged
  kCannotStart = -9  // the emulator refuses the cartridge
};

// Memory for arguments; null when there is none left.
EXPORT(void*, ale_allocate)(uint32_t size);
EXPORT(void, ale_free)(void* memory);

// 32 hexadecimal digits and a zero: of these bytes (until the next call), and of the ROM that is wanted.
EXPORT(const char*, ale_md5)(const uint8_t* rom, uint32_t size);
EXPORT(const char*, ale_wanted_md5)();

// Starts a game. Returns its handle, which is positive, or a status.
EXPORT(int32_t, ale_open)(const uint8_t* rom, uint32_t size, float sticky, int32_t seed);
EXPORT(void, ale_close)(int32_t handle);

// Seeds the random generator and loads the ROM again: the emulator reads its seed at no other time.
EXPORT(int32_t, ale_load)(int32_t handle, int32_t seed);
// Starts a game; the generator goes on.
EXPORT(int32_t, ale_reset)(int32_t handle);
// Plays one action for that many frames, or until the game is over. See Game::play.
EXPORT(int32_t, ale_play)(int32_t handle, int32_t action, int32_t frames);
// Takes the present screen for the latest one, and black for the one before.
EXPORT(int32_t, ale_look)(int32_t handle);

// Of the last ale_play: points won, and frames really played.
EXPORT(int32_t, ale_reward)(int32_t handle);
EXPORT(int32_t, ale_played)(int32_t handle);

EXPORT(int32_t, ale_lives)(int32_t handle);
EXPORT(int32_t, ale_over)(int32_t handle);
EXPORT(int32_t, ale_frame)(int32_t handle);
EXPORT(int32_t, ale_episode_frame)(int32_t handle);

// Grey, two screens of 210 x 160: the one before the last, and the last two pooled.
EXPORT(const uint8_t*, ale_screens)(int32_t handle);
// Grey, 84 x 84: the pooled screen, area-averaged.
EXPORT(const uint8_t*, ale_small)(int32_t handle);
// 128 bytes.
EXPORT(const uint8_t*, ale_ram)(int32_t handle);
// RGBA, 210 x 160: the present screen.
EXPORT(const uint8_t*, ale_screen)(int32_t handle);
// The same, of frame `index` of the last ale_play; null for one that is not kept.
EXPORT(const uint8_t*, ale_paint)(int32_t handle, int32_t index);
// How many frames of a play are kept: its last ones.
EXPORT(int32_t, ale_frames_kept)();

// The emulator's state, with its random generator or without; its size depends on nothing else.
EXPORT(uint32_t, ale_state_size)(int32_t handle, int32_t rng);
EXPORT(const uint8_t*, ale_save)(int32_t handle, int32_t rng);
// The screens are no part of a state, nor is the previous action, which sticky actions may repeat.
EXPORT(int32_t, ale_restore)(int32_t handle, const uint8_t* state, uint32_t size, int32_t rng);
