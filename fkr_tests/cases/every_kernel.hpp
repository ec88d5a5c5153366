// One launch of every kernel, with buffers of the sizes that its cost block declares. Each result is compared with the
// reference's.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/kernel_argument.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"
#include "kernels/cost.hpp"

namespace ptxkit::testing {

class EveryKernel {
 public:
  // With compressible input the LZ4 compressors write blocks of any length, otherwise they fill their rooms.
  explicit EveryKernel(bool lz4_is_compressible) : lz4_is_compressible_(lz4_is_compressible) {}
  virtual ~EveryKernel() = default;

  // Launches them all. Failures are gtest's.
  void run_all();

 protected:
  using Buffers = std::map<std::string, Bytes>;

  // Runs the launch and returns the final buffers by name. How much of the buffers in `by_content` is accessed depends
  // on the data.
  virtual Buffers launch(const kernels::KernelImage& image, uint32_t grid, const kernels::LaunchSize& size,
                         const std::vector<KernelArgument>& arguments,
                         const std::set<std::string_view>& by_content) = 0;

 private:
  // The arguments in order; inputs may be shorter than declared.
  Buffers run(std::string_view kernel, uint32_t grid, const kernels::LaunchSize& size,
              std::vector<KernelArgument> arguments, const std::set<std::string_view>& by_content = {});

  Bytes lz4_input(size_t size) const;
  std::set<std::string_view> lz4_by_content() const;
  void expect_lz4(const Buffers& found, const Bytes& raw) const;

  void zero_page();
  void lz4_compressors();
  void lz4_in_two_kernels();
  void lz4_decompressor();
  void lz4_batches();
  void lz4_batch_compressors();
  void lz4_framed_batches();
  void transforms();
  void match_finders_and_demux();
  void zstd_blocks();
  void zstd_batches();
  void typed_arrays();
  void columns();
  void block_sorts();

  bool lz4_is_compressible_;
  std::set<std::string> seen_;
};

// The buffers of a launch on the emulator, by name.
std::map<std::string, Bytes> named(const kernels::KernelImage& image, const std::vector<KernelArgument>& arguments,
                                   const std::vector<Bytes>& buffers);

}  // namespace ptxkit::testing
