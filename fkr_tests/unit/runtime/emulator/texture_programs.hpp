// The programs whose fetches an H200 gave as well: one for each of its configurations.
#pragma once

#include <string>
#include <vector>

namespace ptxkit::emulator {

std::vector<std::string> texture_programs();  // texture_test.cpp

}  // namespace ptxkit::emulator
