// SPDX-License-Identifier: GPL-2.0-only
// Replaces ALE's common/ScreenExporter.cpp, which writes PNG files with zlib: here nothing is written.

#include "ale/common/ScreenExporter.hpp"

namespace ale {

ScreenExporter::ScreenExporter(ColourPalette& palette) : ScreenExporter(palette, "") {}
ScreenExporter::ScreenExporter(ColourPalette& palette, const std::string& path)
    : m_palette(palette), m_frame_number(0), m_frame_field_width(6), m_path(path) {}
void ScreenExporter::save(const ALEScreen&, const std::string&) const {}
void ScreenExporter::saveNext(const ALEScreen&) {}

}  // namespace ale
