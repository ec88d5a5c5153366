// Standard input to standard output, as an LZ4 frame (or any codec: stream lzr) and back (stream -d).
#include <cstdio>
#include <string>

#include <ptxkit.hpp>

int main(int count, char** words) {
  namespace api = ptxkit::api;
  auto context = api::Context::create();
  if (!context) return std::fprintf(stderr, "%s\n", context.error().text.c_str()), 1;
  const auto read = [](api::MutableBytes into) {
    const size_t bytes = std::fread(into.data(), 1, into.size(), stdin);
    return bytes == 0 && std::ferror(stdin) ? -1L : static_cast<long>(bytes);
  };
  const auto write = [](api::Bytes bytes) {
    return std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size();
  };
  const std::string word = count > 1 ? words[1] : "lz4";
  const auto codec = api::find_codec(word == "-d" ? "lz4" : word);
  if (!codec) return std::fprintf(stderr, "%s\n", codec.error().text.c_str()), 2;
  const auto totals = word == "-d" ? context->decompress_stream(read, write)
                                   : context->compress_stream(read, write, api::stream_options(*codec));
  if (!totals || std::fflush(stdout) != 0)
    return std::fprintf(stderr, "%s\n", totals ? "cannot write" : totals.error().text.c_str()), 1;
  std::fprintf(stderr, "%llu raw bytes, %llu stored\n", static_cast<unsigned long long>(totals->raw_bytes),
               static_cast<unsigned long long>(totals->stored_bytes));
  return 0;
}
