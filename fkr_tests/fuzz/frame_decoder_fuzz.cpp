// Any bytes as an LZ4 stream: decoding ends with raw bytes or with an error that names the place, and never otherwise.
// With clang: -fsanitize=fuzzer,address; with any compiler: smoke_main.cpp runs it on seeded mutations.
#include <cstdint>
#include <cstdlib>

#include "runtime/codec/executor.hpp"
#include "runtime/codec/stream.hpp"

namespace {

// Keeps nothing but stops a stream that decodes to gigabytes.
class LimitedSink final : public ptxkit::format::ByteSink {
 public:
  ptxkit::Result<void> write(ptxkit::format::Bytes bytes) override {
    written_ += bytes.size();
    if (written_ > (64u << 20)) return ptxkit::fail("enough");
    return {};
  }

 private:
  std::size_t written_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static ptxkit::codec::Executor executor(1);
  static const auto backend = ptxkit::codec::make_cpu_backend(executor);
  ptxkit::format::MemorySource source({data, size}, "fuzz");
  LimitedSink sink;
  const auto decoded = ptxkit::codec::decompress_stream(source, sink, *backend);
  if (!decoded && decoded.error().what != "enough" && decoded.error().where.empty()) std::abort();
  return 0;
}
