// The control-flow graph of a function as a picture.
#pragma once

#include <string>
#include <string_view>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::inspect {

// A `digraph` in Graphviz's language.
std::string flow_dot(const ptx::Module& module, const ptx::Function& function);

// A standalone SVG image with its own layout, which follows the viewer's light or dark setting. Loop heads, blocks that
// end threads, and unreachable blocks are marked. Long blocks are cut; the tooltip has their whole text. Element ids
// begin with `id_prefix`, so that one page can hold several images.
std::string flow_svg(const ptx::Module& module, const ptx::Function& function, std::string_view id_prefix = "");

}  // namespace ptxkit::inspect
