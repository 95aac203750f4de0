// SPDX-License-Identifier: GPL-2.0-only
// Replaces ALE's environment/phosphor_blend.cpp, whose constructor tabulates the averages of all pairs of colours: 0.12 s
// of every load, for averaging screens, which is off here.

#include "ale/environment/phosphor_blend.hpp"

namespace ale {

PhosphorBlend::PhosphorBlend(stella::OSystem*) {}
void PhosphorBlend::process(ALEScreen&) {}

}  // namespace ale
