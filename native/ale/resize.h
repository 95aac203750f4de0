// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <array>
#include <cstdint>

constexpr int kSmallSide = 84;
using SmallScreen = std::array<uint8_t, kSmallSide * kSmallSide>;

// Shrinks a grey screen of 210 x 160 so that every new pixel is the average of the area it covers.
// Bit for bit what area_resize in pyapp/breakout/preprocess.py gives, which says where each rule comes from.
void area_resize(const uint8_t* grey, SmallScreen& small);
