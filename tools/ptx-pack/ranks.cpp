#include "tools/ptx-pack/ranks.hpp"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "support/place.hpp"

namespace ptxkit::pack {
namespace {

bool read_number(std::string_view text, size_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

// The same for all inputs whose outputs lead to one file. Relative to the working folder, which may have other names on
// other machines. Of --auto and --trial, where an output's suffix is not known yet, outputs must not be links
// (Packer::convert), so an input's own name serves.
std::string shared_name(const Options& options, const std::string& input) {
  namespace fs = std::filesystem;
  fs::path path = input;
  if (options.chooses == Chooses::named) {
    path = output_path(options, input, options.format).value_or(input);
    const auto target = target_of(path.string(), STDOUT_FILENO);
    if (target && !target->descriptor) path = target->place.path();
  }
  std::error_code error;
  const fs::path folder = fs::canonical(path.has_parent_path() ? path.parent_path() : ".", error);
  const fs::path here = fs::canonical(".", error);
  return error ? path.lexically_normal().string() : (folder / path.filename()).lexically_relative(here).string();
}

}  // namespace

Result<Rank> rank_in_mpi_job() {
  for (const auto& [index, count] :
       {std::pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), std::pair("PMI_RANK", "PMI_SIZE")}) {
    const char *const index_text = std::getenv(index), *const count_text = std::getenv(count);
    if (index_text == nullptr && count_text == nullptr) continue;
    Rank rank;
    if (index_text != nullptr && count_text != nullptr && read_number(index_text, rank.index) &&
        read_number(count_text, rank.count) && rank.index < rank.count) {
      return rank;
    }
    return fail(
        fmt::format("--share-by-rank: expected {} and {} to be a rank and a number of ranks, found '{}' and '{}'",
                    index, count, index_text == nullptr ? "" : index_text, count_text == nullptr ? "" : count_text));
  }
  return fail("--share-by-rank is for processes of an MPI job: neither OMPI_COMM_WORLD_RANK nor PMI_RANK is set", {},
              "start it with mpirun");
}

std::vector<InputName> share_of(const Rank& rank, const Options& options, std::vector<InputName> inputs) {
  std::erase_if(inputs, [&](const InputName& input) {
    const std::string name = shared_name(options, input.path);
    const format::Bytes bytes(reinterpret_cast<const uint8_t*>(name.data()), name.size());
    return format::block_hash(bytes) % rank.count != rank.index;
  });
  return inputs;
}

}  // namespace ptxkit::pack
