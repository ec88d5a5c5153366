// The control-flow graph of a function as a picture.
#pragma once

#include <string>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::inspect {

// A `digraph` in Graphviz's language.
std::string flow_dot(const ptx::Module& module, const ptx::Function& function);

// A standalone SVG image with a layout of its own; follows the reader's light or dark setting. Loop heads, blocks that
// end threads and unreachable blocks are told apart; long blocks are cut, their whole text is in the tooltip. The ids
// of its elements begin with `id_prefix`, so that a page can hold several.
std::string flow_svg(const ptx::Module& module, const ptx::Function& function, std::string_view id_prefix = "");

}  // namespace ptxkit::inspect
