// The manual page of ptx-pack and ptx-pack-mpi, made from the parser's own options.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace ptxkit::pack {

// In the language of man(7).
std::string man_page(const CLI::App& app, const std::string& name, const std::string& version);

}  // namespace ptxkit::pack
