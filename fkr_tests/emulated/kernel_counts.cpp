// Counts the instructions that one launch of every kernel executes on the emulator, and prints them as JSON: for each
// kernel the raw bytes of its items, the bytes that its threads ask of global memory, and the warp instructions of each
// class. The counts follow from PTX and data alone, so they are the same on every machine.
//
// usage: kernel_counts [FILE...]   each FILE is PTX that takes the place of the embedded kernel with its entry's name
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "fkr_tests/cases/every_kernel.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"
#include "kernels/cost.hpp"
#include "kernels/images.hpp"
#include "runtime/emulator/watch.hpp"
#include "support/file.hpp"

namespace ptxkit::testing {
namespace {

// "global memory" or that of another state space, otherwise the family of the opcode.
std::string class_of(const ptx::Function& function, ptx::InstructionId id) {
  const ptx::Accesses accesses = ptx::accesses_of(function, id);
  if (function.instructions[id].space == ptx::Space::param) return "param memory";
  if (accesses.count == 0) return std::string(ptx::family_name(function.instructions[id].op));
  const ptx::Space space = accesses.items[0].space;
  return fmt::format("{} memory", space == ptx::Space::generic ? "generic" : ptx::text(space));
}

struct Counts {
  uint64_t raw_bytes = 0, global_bytes = 0;
  std::map<std::string, uint64_t> warp_instructions;  // by class
};

class CountEveryKernel : public EveryKernel {
 public:
  explicit CountEveryKernel(std::map<std::string, std::string> texts) : EveryKernel(true), texts_(std::move(texts)) {}

  std::string json() const {
    nlohmann::ordered_json all;
    for (const auto& [kernel, counts] : counts_) {
      all[kernel] = {{"raw_bytes", counts.raw_bytes},
                     {"global_bytes", counts.global_bytes},
                     {"warp_instructions", counts.warp_instructions}};
    }
    return all.dump(2);
  }

 protected:
  Buffers launch(const kernels::KernelImage& image, uint32_t grid, const kernels::LaunchSize& size,
                 const std::vector<KernelArgument>& arguments, const std::set<std::string_view>&) override {
    const std::string name(image.name);
    const auto other = texts_.find(name);
    const std::string text = other == texts_.end() ? std::string(image.ptx) : other->second;
    const auto ran = count_launch(text, image.name, grid, image.block_threads, arguments);
    EXPECT_EQ(ran.report, "");
    const ptx::ParseResult parsed = ptx::parse(text, name + ".ptx");
    Counts& of = counts_[name];
    of.raw_bytes += size.input_bytes;
    for (const emulator::InstructionCount& count : ran.counts) {
      const ptx::Function& function = parsed.module.functions[count.function];
      of.warp_instructions[class_of(function, count.instruction)] += count.warps;
      const ptx::Accesses accesses = ptx::accesses_of(function, count.instruction);
      for (unsigned i = 0; i < accesses.count; ++i) {
        if (accesses.items[i].space != ptx::Space::global) continue;
        of.global_bytes += count.threads * accesses.items[i].extent_bytes;
      }
    }
    return named(image, arguments, ran.buffers);
  }

 private:
  std::map<std::string, std::string> texts_;
  std::map<std::string, Counts> counts_;
};

int run(int argc, char** argv) {
  std::map<std::string, std::string> texts;
  for (int i = 1; i < argc; ++i) {
    const auto text = read_file(argv[i]);
    if (!text) {
      fmt::print(stderr, "kernel_counts: {}\n", text.error().message());
      return 2;
    }
    const ptx::ParseResult parsed = ptx::parse(*text, argv[i]);
    if (!parsed.diagnostics.empty() || parsed.module.functions.size() != 1) {
      fmt::print(stderr, "kernel_counts: {}: expected the PTX of one kernel\n", argv[i]);
      return 2;
    }
    texts[std::string(parsed.module.functions[0].name)] = *text;
  }
  CountEveryKernel kernels(std::move(texts));
  kernels.run_all();
  if (::testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed()) return 1;
  fmt::print("{}\n", kernels.json());
  return 0;
}

}  // namespace
}  // namespace ptxkit::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return ptxkit::testing::run(argc, argv);
}
