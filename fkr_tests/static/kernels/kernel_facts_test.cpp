// Properties of the kernels' PTX text: 32-bit shared addresses, LZ4's hash multiplier, the main loops, warp collectives
// that every lane reaches.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "analyzer/analyze/identity.hpp"
#include "analyzer/flow/dominators.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/instrument/launch_markers.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/names.hpp"
#include "kernels/bwt/abi.hpp"
#include "kernels/cost.hpp"
#include "kernels/entropy/rans_format.hpp"
#include "kernels/images.hpp"
#include "kernels/lz4/lz4_format.hpp"
#include "kernels/lz77/abi.hpp"
#include "support/file.hpp"

namespace ptxkit::kernels {
namespace {

// One image, parsed, with its loops.
struct Parsed {
  explicit Parsed(const KernelImage& image)
      : result(ptx::parse(std::string(image.ptx), std::string(image.name) + "." + std::string(image.target))) {
    EXPECT_TRUE(result.diagnostics.empty());
  }
  const ptx::Function& function() const { return result.module.functions.at(0); }
  ptx::ParseResult result;
};

template <class Check>
void for_each_image(std::string_view name, const Check& check) {
  size_t count = 0;
  for (const KernelImage& image : kernel_images()) {
    if (!name.empty() && image.name != name) continue;
    SCOPED_TRACE(std::string(image.name) + " " + std::string(image.target) + " " + std::string(image.variant));
    check(image, Parsed(image));
    ++count;
  }
  EXPECT_GE(count, 4u);  // two targets, release and debug
}

TEST(KernelFacts, SharedMemoryIsAddressedIn32Bits) {
  size_t access_count = 0;
  for_each_image("", [&](const KernelImage&, const Parsed& parsed) {
    const ptx::Function& function = parsed.function();
    for (const ptx::Instruction& instruction : function.instructions) {
      if (instruction.space != ptx::Space::shared) continue;
      for (const ptx::Operand& operand : function.operands(instruction)) {
        if (operand.kind != ptx::OperandKind::address || operand.base != ptx::AddressBase::reg) continue;
        EXPECT_EQ(ptx::bit_width(function.registers[operand.id].type), 32u) << instruction.spelling;
        ++access_count;
      }
    }
  });
  EXPECT_GE(access_count, 12u);  // each compressor clears, reads and writes its table
}

TEST(KernelFacts, TheHashMultiplierIsThere) {
  for (const auto name : {kLz4CompressPage, kLz4CompressChunk, kLz4CompressHigh}) {
    for_each_image(name, [](const KernelImage&, const Parsed& parsed) {
      bool found = false;
      for (const ptx::Instruction& instruction : parsed.function().instructions) {
        if (instruction.op != ptx::Op::mul && instruction.op != ptx::Op::mad) continue;
        for (const ptx::Operand& operand : parsed.function().operands(instruction)) {
          found |= operand.kind == ptx::OperandKind::integer && static_cast<uint32_t>(operand.value) == kHashMultiplier;
        }
      }
      EXPECT_TRUE(found);
    });
  }
}

// The number of loops around `op`.
uint32_t loop_depth_of(const ptx::Function& function, ptx::Op op) {
  const flow::Graph graph(function);
  const flow::Loops loops(graph, flow::DominatorTree::dominators(graph));
  for (ptx::InstructionId id = 0; id < function.instructions.size(); ++id) {
    if (function.instructions[id].op != op) continue;
    const flow::LoopId loop = loops.innermost(graph.block_of(id));
    return loop == flow::kNone ? 0 : loops.loop(loop).depth;
  }
  ADD_FAILURE() << "no " << ptx::text(op);
  return 0;
}

TEST(KernelFacts, MainLoops) {
  for_each_image(kLz4CompressPage, [](const KernelImage&, const Parsed& parsed) {
    EXPECT_EQ(loop_depth_of(parsed.function(), ptx::Op::prmt), 2u) << "windows of a batch";
  });
  for_each_image(kLz4CompressChunk, [](const KernelImage&, const Parsed& parsed) {
    EXPECT_EQ(loop_depth_of(parsed.function(), ptx::Op::brev), 1u) << "scores of a tile";
  });
  for_each_image(kLz4CompressHigh, [](const KernelImage&, const Parsed& parsed) {
    EXPECT_EQ(loop_depth_of(parsed.function(), ptx::Op::brev), 2u) << "scores of a step of a tile";
  });
  for_each_image(kLz4Decompress, [](const KernelImage&, const Parsed& parsed) {
    EXPECT_EQ(loop_depth_of(parsed.function(), ptx::Op::bar), 1u) << "sequences";
  });
  for_each_image(kZeroPage, [](const KernelImage&, const Parsed& parsed) {
    EXPECT_EQ(loop_depth_of(parsed.function(), ptx::Op::vote), 1u) << "words";
  });
}

bool is_collective(ptx::Op op) {
  return op == ptx::Op::shfl || op == ptx::Op::vote || op == ptx::Op::match || op == ptx::Op::redux;
}

// The immediate itself, or the operand of the only `mov` to a register: the backend passes the mask of redux.sync in a
// register.
ptx::Operand value_of(const ptx::Function& function, const ptx::Operand& operand) {
  if (operand.kind != ptx::OperandKind::reg) return operand;
  std::vector<ptx::Operand> values;
  for (const ptx::Instruction& instruction : function.instructions) {
    const auto operands = function.operands(instruction);
    if (operands.empty() || operands[0].kind != ptx::OperandKind::reg || operands[0].id != operand.id) continue;
    if (instruction.op == ptx::Op::mov) values.push_back(operands[1]);
  }
  return values.size() == 1 ? values[0] : operand;
}

bool works_as_cta(const KernelImage& image) {
  return image.name == kLz4CompressChunk || image.name == kLz4CompressHigh || image.name == kLz4BatchCompressChunk ||
         image.name == kLz4BatchJoin || image.name == kRansChunkedDecode || image.name == kRansWarpDecode ||
         image.name == kLz77Table || image.name.starts_with("zstd_match") || image.name == "zstd_batch_join" ||
         image.name.starts_with("deflate_match") || (image.name.starts_with("typed_") && image.name != "typed_begin") ||
         image.name.starts_with("bwt_") || image.name.starts_with("mtf_") || image.name.starts_with("zero_runs_");
}

// Warps of a CTA are independent, so CTA barriers occur only in kernels with a CTA for each item. Warp-wide
// instructions name the whole warp and are not predicated.
TEST(KernelFacts, BarrierSafety) {
  for_each_image("", [](const KernelImage& image, const Parsed& parsed) {
    const ptx::Function& function = parsed.function();
    for (const ptx::Instruction& instruction : function.instructions) {
      EXPECT_NE(instruction.op, ptx::Op::barrier);
      const bool is_bar = instruction.op == ptx::Op::bar;
      if (!is_bar && !is_collective(instruction.op)) continue;
      EXPECT_FALSE(instruction.guard) << instruction.spelling;
      if (instruction.spelling == "bar.sync" && works_as_cta(image)) continue;
      EXPECT_TRUE(!is_bar || instruction.spelling.substr(0, 8) == "bar.warp") << instruction.spelling;
      const ptx::Operand mask = value_of(function, function.operands(instruction).back());
      EXPECT_EQ(mask.kind, ptx::OperandKind::integer) << instruction.spelling;
      EXPECT_EQ(static_cast<uint32_t>(mask.value), 0xffffffffu) << instruction.spelling;
    }
  });
}

TEST(KernelFacts, EveryTextHasACostThatParses) {
  for_each_image("", [](const KernelImage& image, const Parsed&) {
    const auto cost = parse_kernel_cost(image.ptx);
    ASSERT_TRUE(cost) << cost.error().message();
    if (image.name.starts_with("lz77_") && image.name != kLz77Decode) return;  // each thread handles a position
    if (image.name == "zstd_batch_split") return;                              // each thread handles a block
    if (image.name == "zstd_batch_read_sequences") return;                     // a warp handles four blocks
    // A warp or a CTA handles an item's bytes.
    const bool takes_pages = image.name.ends_with("_page") || image.name == kLz4Decompress ||
                             image.name == kCopyItems || image.name == kLz4BatchDecompress ||
                             image.name == kLz4BatchSizes || image.name.starts_with("demux_") ||
                             image.name == kBwtBitonic;
    const uint32_t threads = works_as_cta(image) ? image.block_threads : 32;
    EXPECT_EQ(*cost->thread_count(takes_pages ? kMaxPageBytes : kMaxChunkBytes), threads);
  });
}

TEST(KernelFacts, LocalMemIsTheSharedMemoryOfTheText) {
  size_t with_shared_count = 0;
  for_each_image("", [&](const KernelImage& image, const Parsed& parsed) {
    uint64_t shared_bytes = 0;
    for (const ptx::Variable& variable : parsed.result.module.variables) {
      if (variable.space == ptx::Space::shared) shared_bytes += variable.size_bytes;
    }
    EXPECT_EQ(parse_kernel_cost(image.ptx)->local_mem_bytes, shared_bytes);
    with_shared_count += shared_bytes != 0 ? 1 : 0;
  });
  EXPECT_GE(with_shared_count, 80u);  // 23 kernels for two targets, release and debug
}

TEST(KernelFacts, ThreadsOfTheMatchFinders) {
  for (const auto& [name, threads] :
       {std::pair{kLz77Hash, 4u << 20}, std::pair{kLz77Batch, 131072u}, std::pair{kLz77Link, 32u * kLzLinkBlocks}}) {
    for_each_image(name, [=](const KernelImage& image, const Parsed&) {
      EXPECT_EQ(*parse_kernel_cost(image.ptx)->thread_count(4u << 20), threads);
    });
  }
}

TEST(KernelFacts, ImagesDescribeTheirText) {
  for_each_image("", [](const KernelImage& image, const Parsed& parsed) {
    const ptx::Function& function = parsed.function();
    EXPECT_EQ(function.name, image.name);
    EXPECT_EQ(parsed.result.module.target, image.target);
    EXPECT_EQ(function.attributes.req_ntid[0], image.block_threads);
    ASSERT_EQ(function.parameters.size(), image.parameters.size());
    for (size_t i = 0; i < image.parameters.size(); ++i) {
      const ptx::Variable& variable = parsed.result.module.variables[function.parameters[i]];
      EXPECT_EQ(variable.name, std::string(image.name) + "_" + std::string(image.parameters[i].name));
      EXPECT_EQ(variable.size_bytes, image.parameters[i].type == ParameterType::u32 ? 4u : 8u);
      EXPECT_EQ(variable.pointer_align, image.parameters[i].pointee_alignment_bytes);
    }
  });
}

// crash-analyze takes the launch file of each debug build: its threads write where an item begins, and where they are
// done with it.
TEST(KernelFacts, EveryDebugBuildHasMarkers) {
  size_t debug_count = 0;
  std::set<std::string_view> kernels;
  for_each_image("", [&](const KernelImage& image, const Parsed& parsed) {
    kernels.insert(image.name);
    if (image.variant != "debug") return;
    ++debug_count;
    const std::string path = std::string(PTXKIT_PTX_FOLDER "/") + std::string(image.name) + "." +
                             std::string(image.target) + ".debug.launch.json";
    const auto json = read_file(path);
    ASSERT_TRUE(json) << json.error().message();
    ASSERT_TRUE(instrument::is_launch_file(*json));
    const auto map = instrument::launch_markers(*json, parsed.result.module, path);
    ASSERT_TRUE(map) << map.error().message();
    for (const Mark mark : {Mark::item, Mark::status}) {
      const instrument::Marker* const marker = map->find(static_cast<uint32_t>(mark));
      ASSERT_NE(marker, nullptr) << static_cast<uint32_t>(mark);
      EXPECT_EQ(marker->is_last, mark == Mark::status) << marker->source;
      EXPECT_FALSE(marker->next_lines.empty());
      EXPECT_NE(marker->source.find("kernels/"), std::string::npos);
    }
  });
  EXPECT_EQ(debug_count, 2 * kernels.size());  // for two targets
  EXPECT_GE(kernels.size(), 33u);
}

TEST(KernelFacts, EveryImageHasAGoodVerdictOnExactlyItsText) {
  for_each_image("", [](const KernelImage& image, const Parsed&) {
    ASSERT_TRUE(image.verdict);
    EXPECT_EQ(image.verdict->xxh128_hex, report::xxh128_hex(image.ptx));
    EXPECT_GE(image.verdict->score, 90u);
    EXPECT_EQ(image.verdict->critical_count, 0u);
    EXPECT_EQ(image.ptx.data()[image.ptx.size()], '\0');
  });
}

// The launch shapes of abi.hpp are those of the kernels.
TEST(KernelFacts, LaunchShapesOfTheAbi) {
  for (const auto& [name, shape] :
       {std::pair{kLz4CompressPage, kLz4CompressPageShape}, std::pair{kLz4CompressChunk, kLz4CompressChunkShape},
        std::pair{kLz4CompressHigh, kLz4CompressChunkShape}, std::pair{kLz4MatchPage, kLz4CompressPageShape},
        std::pair{kLz4EncodePage, kLz4CompressPageShape}, std::pair{kLz4Decompress, kLz4DecompressShape},
        std::pair{kZeroPage, kZeroPageShape}}) {
    for_each_image(name, [&](const KernelImage& image, const Parsed&) {
      EXPECT_EQ(image.block_threads, shape.block_threads);
      EXPECT_EQ(shape.items_per_block, works_as_cta(image) ? 1 : shape.block_threads / 32);
    });
  }
  EXPECT_EQ(kLz4CompressPageShape.grid_blocks(0), 0u);
  EXPECT_EQ(kLz4CompressPageShape.grid_blocks(1), 1u);
  EXPECT_EQ(kLz4CompressPageShape.grid_blocks(4), 1u);
  EXPECT_EQ(kLz4CompressPageShape.grid_blocks(5), 2u);
  EXPECT_EQ(kLz4CompressPageShape.grid_blocks(0xffffffff), 0x40000000u);
}

TEST(KernelFacts, TheNewestTargetThatADeviceTakes) {
  EXPECT_EQ(find_kernel_image(kZeroPage, 7, 0), nullptr);
  EXPECT_EQ(find_kernel_image(kZeroPage, 7, 5)->target, "sm_75");
  EXPECT_EQ(find_kernel_image(kZeroPage, 8, 9)->target, "sm_80");
  EXPECT_EQ(find_kernel_image(kZeroPage, 9, 0)->target, "sm_80");
  EXPECT_EQ(find_kernel_image(kZeroPage, 12, 0)->target, "sm_80");
  EXPECT_EQ(find_kernel_variant(kZeroPage, 9, 0, "debug")->variant, "debug");
  EXPECT_EQ(find_kernel_image("no_such_kernel", 9, 0), nullptr);
}

}  // namespace
}  // namespace ptxkit::kernels
