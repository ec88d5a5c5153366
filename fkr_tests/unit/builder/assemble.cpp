// Runs ptxas on a temporary file. ptxas is searched on the path and where the toolkit's packages install it.
#include "fkr_tests/unit/builder/assemble.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace ptxkit::testing {
namespace {

std::string find_ptxas() {
  const char* path = std::getenv("PATH");
  std::string folders = path == nullptr ? "" : path;
  folders += ":/usr/local/cuda/bin";
  for (size_t begin = 0; begin < folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string candidate = folders.substr(begin, end - begin) + "/ptxas";
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  return "";
}

}  // namespace

bool has_ptxas() { return !find_ptxas().empty(); }

std::string assemble(const std::string& ptx, unsigned sm) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("ptxkit_assemble_" + std::to_string(getpid()) + ".ptx");
  std::ofstream(file) << ptx;
  const std::string command =
      find_ptxas() + " -arch=sm_" + std::to_string(sm) + " -o /dev/null " + file.string() + " 2>&1";
  std::string said;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "ptxas could not be started";
  std::array<char, 4096> chunk;
  while (const size_t count = std::fread(chunk.data(), 1, chunk.size(), pipe)) said.append(chunk.data(), count);
  if (pclose(pipe) != 0 && said.empty()) said = "ptxas failed and said nothing";
  std::filesystem::remove(file);
  return said;
}

}  // namespace ptxkit::testing
