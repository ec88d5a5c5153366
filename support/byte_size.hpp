// Numbers of bytes as people write them.
#pragma once

#include <string>

namespace ptxkit {

// "64M" and "256MiB" become digits: K, M, G, T for powers of 1024, with "B" or "iB" behind it or not, in either case; a
// number alone is bytes. What is wrong with anything else, overflow included; empty where nothing is.
std::string byte_size_to_digits(std::string& word);

}  // namespace ptxkit
