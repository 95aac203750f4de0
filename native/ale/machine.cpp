// SPDX-License-Identifier: GPL-2.0-only
#include "machine.h"

#include "ale/common/ColourPalette.hpp"
#include "ale/common/Log.hpp"
#include "ale/emucore/Console.hxx"
#include "ale/emucore/OSystem.hxx"
#include "ale/emucore/Settings.hxx"
#include "ale/environment/stella_environment.hpp"
#include "ale/games/supported/Breakout.hpp"
#include "memory_file.h"

using ale::stella::OSystem;
using ale::stella::Settings;

Machine::Machine() = default;
Machine::~Machine() = default;

std::unique_ptr<Machine> Machine::start(const Rom& rom, float sticky, int32_t seed) {
  ale::Logger::setMode(ale::Logger::Error);
  std::unique_ptr<Machine> machine(new Machine);
  auto& system = machine->system_ = std::make_unique<OSystem>();
  auto& settings = machine->settings_ = std::make_unique<Settings>(system.get());
  settings->setInt("random_seed", seed);
  settings->setFloat("repeat_action_probability", sticky);
  settings->validate();
  system->create();
  const MemoryFile cartridge{rom.data(), static_cast<uint32_t>(rom.size())};
  if (!system->createConsole(cartridge.name())) return nullptr;
  system->colourPalette().setPalette("standard", system->console().getFormat());

  machine->rules_ = std::make_unique<ale::BreakoutSettings>();
  machine->rules_->modifyEnvironmentSettings(*settings);
  machine->environment_ = std::make_unique<ale::StellaEnvironment>(system.get(), machine->rules_.get());
  machine->environment_->reset();

  const auto& screen = machine->environment_->getScreen();
  if (screen.height() != kRows || screen.width() != kColumns) return nullptr;
  // Colours have even numbers; an odd one is the grey of its neighbour.
  for (int colour = 0; colour < 256; colour += 2) {
    int red, green, blue;
    system->colourPalette().getRGB(colour, red, green, blue);
    machine->rgba_of_[colour] = 0xff000000u | blue << 16 | green << 8 | red;
  }
  return machine;
}

void Machine::reset() { environment_->reset(); }

int32_t Machine::act(ale::Action action) { return environment_->act(action, ale::PLAYER_B_NOOP, 1.0f, 0.0f); }

int32_t Machine::lives() const { return rules_->lives(); }
bool Machine::over() const { return environment_->isTerminal(); }
int32_t Machine::frame() const { return environment_->getFrameNumber(); }
int32_t Machine::episode_frame() const { return environment_->getEpisodeFrameNumber(); }
const uint8_t* Machine::ram() const { return environment_->getRAM().array(); }
const uint8_t* Machine::colours() const { return environment_->getScreen().getArray(); }

void Machine::to_grey(const uint8_t* colours, uint8_t* grey) const {
  system_->colourPalette().applyPaletteGrayscale(grey, const_cast<uint8_t*>(colours), kPixels);
}

void Machine::to_rgba(const uint8_t* colours, uint32_t* rgba) const {
  for (size_t i = 0; i < kPixels; ++i) rgba[i] = rgba_of_[colours[i]];
}

std::string Machine::save(bool rng) const { return environment_->cloneState(rng).serialize(); }
void Machine::restore(const std::string& state) { environment_->restoreState(ale::ALEState(state)); }
