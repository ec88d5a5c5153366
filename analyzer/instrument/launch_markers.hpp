// The markers that a kernel's author set (k.mark() of the DSL), from the launch file of a debug build.
#pragma once

#include <string>
#include <string_view>

#include "analyzer/instrument/instrument.hpp"

namespace ptxkit::instrument {

// Whether this JSON is a launch file rather than a marker map.
bool is_launch_file(std::string_view json);

// The map of the one entry in the launch file that has markers. `module` is the PTX of that debug build, free of
// diagnostics: its `.loc` lines say which instructions set which marker. Fails if the file has no entry with markers or
// several, if the PTX is of another kernel, or if it sets none of the markers.
Result<MarkerMap> launch_markers(std::string_view json, const ptx::Module& module, const std::string& path);

}  // namespace ptxkit::instrument
