// One launch of every kernel, with buffers of the sizes that its cost block declares. Each result is compared with the
// reference's. The emulator and a GPU run them; the test of the costs and the counts of instructions use them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/kernel_argument.hpp"
#include "kernels/cost.hpp"
#include "kernels/images.hpp"

namespace ptxkit::testing {

class EveryKernel {
 public:
  using Buffers = std::map<std::string, Bytes>;

  // With compressible input the LZ4 compressors write blocks of any length, otherwise they fill their rooms.
  explicit EveryKernel(bool is_compressible) : is_compressible_(is_compressible) {}
  virtual ~EveryKernel() = default;

  // Launches them all. Failures are gtest's.
  void run_all();

  bool is_compressible() const { return is_compressible_; }
  bool has_run(std::string_view kernel) const { return seen_.contains(std::string(kernel)); }
  // Runs a launch with the arguments in order, of which inputs may be shorter than declared, and returns the final
  // buffers by name. How much of the buffers in `by_content` is accessed depends on the data.
  Buffers run(std::string_view kernel, uint32_t grid, const kernels::LaunchSize& size,
              std::vector<KernelArgument> arguments, const std::set<std::string_view>& by_content = {});

 protected:
  // The machine that launches, with buffers of the declared sizes.
  virtual Buffers launch(const kernels::KernelImage& image, uint32_t grid, const kernels::LaunchSize& size,
                         const std::vector<KernelArgument>& arguments,
                         const std::set<std::string_view>& by_content) = 0;

 private:
  bool is_compressible_;
  std::set<std::string> seen_;
};

// The buffers of a launch, by name.
std::map<std::string, Bytes> named(const kernels::KernelImage& image, const std::vector<KernelArgument>& arguments,
                                   const std::vector<Bytes>& buffers);

}  // namespace ptxkit::testing
