// A file to a standard LZ4 frame and back, with 64 MiB for the data however large the file is, and told how far it is.
// usage: file INPUT SCRATCH
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "runtime/library/lz4.hpp"

using ptxkit::format::DescriptorSink;
using ptxkit::format::DescriptorSource;

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Opens both, runs `work(source, sink)`, closes both.
template <class Work>
bool through(const std::string& from, const std::string& to, Work work) {
  const int in = ::open(from.c_str(), O_RDONLY), out = ::open(to.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0666);
  if (in < 0 || out < 0) return std::fprintf(stderr, "cannot open %s or %s\n", from.c_str(), to.c_str()), false;
  DescriptorSource source(in, from);
  DescriptorSink sink(out, to);
  const auto totals = work(source, sink);
  ::close(in);
  ::close(out);
  if (!totals) return std::fprintf(stderr, "%s\n", totals.error().message().c_str()), false;
  std::printf("%s -> %s: %llu raw bytes, %llu in the frame\n", from.c_str(), to.c_str(),
              static_cast<unsigned long long>(totals->raw_bytes),
              static_cast<unsigned long long>(totals->stored_bytes));
  return true;
}

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: file INPUT SCRATCH\n"), 2;
  const std::string input = argv[1], packed = std::string(argv[2]) + ".lz4", unpacked = std::string(argv[2]) + ".raw";
  auto lz4 = ptxkit::library::Lz4::open({.log = [](ptxkit::library::LogLevel, std::string_view message) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(message.size()), message.data());
  }});
  if (!lz4) return std::fprintf(stderr, "%s\n", lz4.error().message().c_str()), 1;
  ptxkit::scheduler::Ledger memory("memory", 64u << 20);
  const ptxkit::library::StreamOptions options{
      .limits = {.memory = &memory}, .progress = [](uint64_t raw_bytes, uint64_t stored_bytes) {
        std::fprintf(stderr, "%llu raw bytes, %llu in the frame\n", static_cast<unsigned long long>(raw_bytes),
                     static_cast<unsigned long long>(stored_bytes));
      }};
  if (!through(input, packed, [&](auto& source, auto& sink) { return lz4->compress(source, sink, {}, options); }))
    return 1;
  if (!through(packed, unpacked, [&](auto& source, auto& sink) { return lz4->decompress(source, sink, options); }))
    return 1;
  return content_of(input) == content_of(unpacked) ? 0 : 1;
}
