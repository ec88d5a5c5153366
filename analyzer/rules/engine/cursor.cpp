#include "analyzer/rules/engine/cursor.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "analyzer/flow/bits.hpp"
#include "analyzer/flow/conditions.hpp"
#include "analyzer/flow/delta.hpp"
#include "analyzer/flow/evaluate.hpp"
#include "analyzer/flow/launch.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/flow/uniformity.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/analyses.hpp"

namespace ptxkit::rules {

using flow::Evaluator;
using flow::LoopId;
using flow::ValueId;
using ptx::InstructionId;
using ptx::Op;

namespace {

constexpr unsigned kMaxBlocks = 400;
constexpr unsigned kMaxInstructions = 20000;
constexpr uint32_t kWarpThreads = 32;
// 0x21 is an LZ4 token: two literals, a match of five bytes.
constexpr uint8_t kBytes[] = {1, 2, 3, 5, 0x21, 0x12, 0x13};

// One thread's way through the kernel, block by block.
class Run {
 public:
  Run(Analyses& analyses, const ptx::Access& access, std::optional<uint8_t> byte, bool prefer_taken)
      : analyses_(&analyses),
        access_(&access),
        byte_(byte),
        prefer_taken_(prefer_taken),
        evaluator_(analyses.forms(), flow::Thread{}),
        visits_(analyses.graph().size(), 0) {
    for (flow::ValueId id = 0; id < analyses.ssa().size(); ++id)
      if (analyses.ssa().value(id).kind == flow::Value::Kind::result)
        results_.emplace_back(analyses.ssa().value(id).instruction, id);
    std::sort(results_.begin(), results_.end());
    find_leading();
  }

  std::optional<MisalignedIteration> go() {
    const flow::Graph& graph = analyses_->graph();
    flow::BlockId block = 0, from = flow::kNone;
    const LoopId loop = analyses_->loops().innermost(graph.block_of(access_->instruction));
    uint64_t turn = 0;
    for (unsigned steps = 0; steps < kMaxBlocks && block != flow::kNone; ++steps) {
      if (loop != flow::kNone && block == analyses_->loops().loop(loop).header)
        turn = from != flow::kNone && analyses_->loops().is_back_edge(from, block) ? turn + 1 : 0;
      ++visits_[block];
      enter(block, from);
      for (InstructionId id = graph.block(block).first; id < graph.block(block).end; ++id) {
        if (id == access_->instruction) {
          const auto offset = misaligned_offset();
          if (offset && guard_allows(id)) return MisalignedIteration{turn, *offset, byte_, assumed_branch_};
        }
        if (++instructions_ > kMaxInstructions) return std::nullopt;
        execute(id);
      }
      const flow::BlockId next = next_block(block);
      from = block;
      block = next;
    }
    return std::nullopt;
  }

 private:
  // Blocks from which the access can be reached.
  void find_leading() {
    const flow::Graph& graph = analyses_->graph();
    reaches_access_.assign(graph.size(), false);
    std::vector<flow::BlockId> work{graph.block_of(access_->instruction)};
    reaches_access_[work[0]] = true;
    while (!work.empty()) {
      const flow::BlockId block = work.back();
      work.pop_back();
      for (const flow::BlockId before : graph.predecessors(block))
        if (!reaches_access_[before]) {
          reaches_access_[before] = true;
          work.push_back(before);
        }
    }
  }

  void enter(flow::BlockId block, flow::BlockId from) {
    const flow::Ssa& ssa = analyses_->ssa();
    const auto predecessors = analyses_->graph().predecessors(block);
    const auto edge =
        static_cast<size_t>(std::find(predecessors.begin(), predecessors.end(), from) - predecessors.begin());
    std::vector<std::pair<ValueId, std::optional<uint64_t>>> incoming;
    for (const ValueId phi : ssa.phis(block)) {
      const bool has_argument = edge < predecessors.size() && ssa.arguments(phi)[edge] != flow::kNone;
      incoming.emplace_back(phi, has_argument ? evaluator_.value(ssa.arguments(phi)[edge]) : std::nullopt);
    }
    for (const auto& [phi, value] : incoming) evaluator_.assume(phi, value);
  }

  void execute(InstructionId id) {
    const flow::Ssa& ssa = analyses_->ssa();
    for (auto i = std::lower_bound(results_.begin(), results_.end(), std::pair<InstructionId, ValueId>{id, 0});
         i != results_.end() && i->first == id; ++i) {
      const flow::Operation operation = flow::operation_of(ssa, i->second);
      const unsigned bits = ptx::bit_width(operation.instruction->type());
      const bool is_load = operation.instruction->op == Op::ld && operation.instruction->space != ptx::Space::param;
      if (is_load && byte_ && bits >= 8 && bits <= 64 && ssa.value(i->second).old == flow::kNone)
        evaluator_.assume(i->second, flow::low_mask(bits) & (0x0101010101010101u * *byte_));
      else
        evaluator_.again(i->second);
    }
  }

  bool guard_allows(InstructionId id) {
    const ValueId guard = analyses_->ssa().guard(id);
    if (guard == flow::kNone) return true;
    const auto value = evaluator_.value(guard);
    return !value || (*value != 0) != analyses_->graph().function().instructions[id].guard.negated;
  }

  std::optional<uint64_t> misaligned_offset() {
    const flow::Ssa& ssa = analyses_->ssa();
    const ptx::Operand& operand = analyses_->graph().function().operand_pool[access_->address];
    const flow::Source base = flow::address_base(ssa, access_->address);
    if (base.kind != flow::Source::Kind::value) return std::nullopt;
    const auto value = evaluator_.value(base.id);
    if (!value) return std::nullopt;
    const unsigned bits = flow::width_of(ssa, base.id);
    const uint64_t offset = (*value + operand.value) & flow::low_mask(bits);
    if (offset >> (bits - 1)) return std::nullopt;  // before the object: no run of a correct caller gets there
    return offset % access_->width_bytes ? std::optional(offset) : std::nullopt;
  }

  // The block that comes next. Where the text does not decide, one that leads to the access, each way in its turn.
  flow::BlockId next_block(flow::BlockId block) {
    const flow::Graph& graph = analyses_->graph();
    const auto successors = graph.successors(block);
    if (successors.empty()) return flow::kNone;
    const InstructionId last = graph.last(block);
    const ptx::Instruction& instruction = graph.function().instructions[last];
    const ValueId guard = analyses_->ssa().guard(last);
    if (instruction.op == Op::bra && guard != flow::kNone && successors.size() == 2) {
      if (const auto value = evaluator_.value(guard)) {
        const bool taken = (*value != 0) != instruction.guard.negated;
        return successors[taken ? 0 : 1];
      }
      assumed_branch_ = true;
      const bool first = (visits_[block] % 2 == 1) == prefer_taken_;
      const flow::BlockId wanted = successors[first ? 0 : 1], other = successors[first ? 1 : 0];
      return reaches_access_[wanted] ? wanted : reaches_access_[other] ? other : flow::kNone;
    }
    for (const flow::BlockId next : successors)
      if (reaches_access_[next]) return next;
    return flow::kNone;
  }

  Analyses* analyses_;
  const ptx::Access* access_;
  std::optional<uint8_t> byte_;
  bool prefer_taken_;
  Evaluator evaluator_;
  std::vector<unsigned> visits_;
  std::vector<bool> reaches_access_;
  std::vector<std::pair<InstructionId, ValueId>> results_;
  unsigned instructions_ = 0;
  bool assumed_branch_ = false;
};

}  // namespace

std::optional<MisalignedIteration> find_misaligned_iteration(Analyses& analyses, const ptx::Access& access,
                                                             bool may_assume_data) {
  std::vector<std::optional<uint8_t>> bytes{std::nullopt};
  if (may_assume_data) bytes.insert(bytes.end(), std::begin(kBytes), std::end(kBytes));
  for (const auto byte : bytes)
    for (const bool prefer_taken : {false, true})
      if (const auto found = Run(analyses, access, byte, prefer_taken).go()) return found;
  return std::nullopt;
}

namespace {

flow::Thread thread_of_row(const flow::LaunchShape& shape, unsigned dimension, uint32_t n) {
  flow::Thread at;
  at.tid[dimension] = n;
  for (unsigned d = 0; d < 3; ++d) at.ntid[d] = shape.is_exact ? shape.threads[d] : 0;
  return at;
}

std::optional<uint64_t> difference(flow::Delta& delta, std::span<const flow::Term> parts) {
  uint64_t sum = 0;
  for (const flow::Term& part : parts) {
    const auto differs = delta.of_atom(part.atom);
    if (!differs) return std::nullopt;
    sum += static_cast<uint64_t>(part.coefficient) * *differs;
  }
  return sum;
}

}  // namespace

bool differs_in_row(Analyses& analyses, std::span<const flow::Term> parts, uint32_t width_bytes, unsigned dimension,
                    flow::BlockId block) {
  const flow::LaunchShape& shape = analyses.shape();
  for (const uint32_t n : {1u, 2u, 3u, 4u, 8u, 16u, 31u}) {
    if (n > shape.max_tid(dimension)) break;
    flow::Delta delta(analyses.forms(), analyses.uniformity_of_row(dimension), thread_of_row(shape, dimension, 0),
                      thread_of_row(shape, dimension, n), flow::first_iterations(analyses.loops(), block));
    const auto sum = difference(delta, parts);
    if (!sum) return false;
    if (*sum % width_bytes) return true;
  }
  return false;
}

std::optional<MisalignedPair> find_misaligned_pair(Analyses& analyses, const ptx::Access& access,
                                                   std::span<const flow::Term> parts, unsigned dimension) {
  flow::Forms& forms = analyses.forms();
  const flow::LaunchShape& shape = analyses.shape();
  const flow::UniformityAnalysis& row = analyses.uniformity_of_row(dimension);
  const auto iterations = flow::first_iterations(analyses.loops(), analyses.graph().block_of(access.instruction));
  const auto conditions = analyses.conditions().of_instruction(access.instruction);
  std::optional<uint32_t> first;
  for (uint32_t n = 0; n < kWarpThreads && n <= shape.max_tid(dimension); ++n) {
    flow::Delta delta(forms, row, thread_of_row(shape, dimension, first.value_or(n)),
                      thread_of_row(shape, dimension, n), iterations);
    bool possible = true;
    for (const flow::Condition& condition : conditions) {
      const auto holds = delta.second().value(condition.predicate);
      if (!holds && row.of(condition.predicate) > flow::Uniformity::loaded &&
          !flow::is_bound(analyses.ssa(), condition.predicate))
        return std::nullopt;
      possible = possible && (!holds || (*holds != 0) == condition.expected);
    }
    if (!possible) continue;
    if (!first) {
      first = n;
      continue;
    }
    const auto sum = difference(delta, parts);
    if (!sum) return std::nullopt;
    if (*sum % access.width_bytes) return MisalignedPair{*first, n};
  }
  return std::nullopt;
}

}  // namespace ptxkit::rules
