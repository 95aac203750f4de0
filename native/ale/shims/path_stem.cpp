// SPDX-License-Identifier: GPL-2.0-only
// The one function of std::filesystem that is not in a header and that ALE needs: OSystem::openROM() names a cartridge
// that it does not know after its file.

#include <filesystem>

_LIBCPP_BEGIN_NAMESPACE_FILESYSTEM
path::__string_view path::__stem() const { return __string_view(__pn_).substr(0, __pn_.rfind('.')); }
_LIBCPP_END_NAMESPACE_FILESYSTEM
