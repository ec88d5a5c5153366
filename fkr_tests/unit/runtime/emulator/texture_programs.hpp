// The programs whose fetches were recorded on an H200: one for each of its configurations.
#pragma once

#include <string>
#include <vector>

namespace ptxkit::emulator {

std::vector<std::string> texture_programs();  // texture_test.cpp

}  // namespace ptxkit::emulator
