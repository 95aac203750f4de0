// SPDX-License-Identifier: GPL-2.0-only
#include "resize.h"

#include <algorithm>
#include <cmath>

#include "machine.h"

namespace {

constexpr int kTaps = 3;
constexpr double kSliver = 1e-3;  // a tap that covers less is a rounding error of the border's position

// Which inputs every output averages, and with which weights. An output with fewer taps is padded with weight 0, which
// leaves its sum as it is.
struct Taps {
  int index[kTaps][kSmallSide] = {};
  float weight[kTaps][kSmallSide] = {};

  explicit Taps(int size_in) {
    const double scale = static_cast<double>(size_in) / kSmallSide;
    for (int out = 0; out < kSmallSide; ++out) {
      const double low = out * scale;
      const double high = (out + 1) * scale;
      const int end = std::min(static_cast<int>(high) + 1, size_in);
      int tap = 0;
      for (int in = static_cast<int>(low); in < end; ++in) {
        const double share = std::min<double>(high, in + 1) - std::max<double>(low, in);
        if (share <= kSliver) continue;
        index[tap][out] = in;
        weight[tap][out] = static_cast<float>(share / scale);
        ++tap;
      }
    }
  }
};

const Taps rows(Machine::kRows);
const Taps columns(Machine::kColumns);

}  // namespace

// Columns before rows, taps from left to right and from top to bottom, each product rounded to a float before it is
// added (-ffp-contract=off), the sum rounded half to even.
void area_resize(const uint8_t* grey, SmallScreen& small) {
  static float narrow[Machine::kRows][kSmallSide];  // too large for the stack
  for (int row = 0; row < Machine::kRows; ++row) {
    const uint8_t* line = grey + row * Machine::kColumns;
    for (int out = 0; out < kSmallSide; ++out) {
      float sum = 0.0f;
      for (int tap = 0; tap < kTaps; ++tap) sum += line[columns.index[tap][out]] * columns.weight[tap][out];
      narrow[row][out] = sum;
    }
  }
  for (int row = 0; row < kSmallSide; ++row) {
    for (int out = 0; out < kSmallSide; ++out) {
      float sum = 0.0f;
      for (int tap = 0; tap < kTaps; ++tap) sum += narrow[rows.index[tap][row]][out] * rows.weight[tap][row];
      small[row * kSmallSide + out] = static_cast<uint8_t>(std::nearbyint(sum));
    }
  }
}
