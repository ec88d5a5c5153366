// Byte counts in the form in which people write them.
#pragma once

#include <string>

namespace ptxkit {

// Replaces `word`, such as "64M" or "256MiB", by its value in digits: K, M, G, T are powers of 1024, optionally
// followed by "B" or "iB", in either case; a plain number means bytes. Returns what is wrong with any other word,
// overflow included, or an empty string.
std::string byte_size_to_digits(std::string& word);

}  // namespace ptxkit
