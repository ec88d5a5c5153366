#include "tools/ptx-pack/ranks.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/lz4_frame.hpp"

namespace ptxkit::pack {
namespace {

bool read_number(std::string_view text, size_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
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

std::vector<InputName> share_of(const Rank& rank, std::vector<InputName> inputs) {
  std::vector<InputName> mine;
  for (InputName& input : inputs) {
    const std::string& path = input.path;
    const format::Bytes name(reinterpret_cast<const uint8_t*>(path.data()), path.size());
    if (format::block_hash(name) % rank.count == rank.index) mine.push_back(std::move(input));
  }
  return mine;
}

}  // namespace ptxkit::pack
