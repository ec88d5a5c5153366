// Asks the solver about one access: is there a thread that gets to it with a misaligned address, or outside of its
// object?
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/evaluate.hpp"
#include "analyzer/prove/query.hpp"
#include "analyzer/prove/thread.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/solver_budget.hpp"

namespace ptxkit::rules {

class AccessProver {
 public:
  struct Answer {
    // `never`: no thread of any launch, whatever the parameters and the memory are. `in_thread`: that one, by the facts
    // of the launch alone, which must say how many threads and blocks there are.
    enum class Kind : uint8_t { never, in_thread, open } kind = Kind::open;
    flow::Thread thread{};
    uint64_t offset = 0;  // of the address from the start of its object
  };

  explicit AccessProver(Context& context);

  // Whether the address may be no multiple of the access's width. The object `base` starts at a multiple of
  // `start_bytes`; flow::kNoBase: the address is a number.
  Answer misaligned(const ptx::Access& access, flow::BaseId base, uint32_t start_bytes);
  // Whether the access may touch a byte outside of the `size_bytes` of the object `base`.
  Answer outside(const ptx::Access& access, flow::BaseId base, uint64_t size_bytes);

 private:
  using Fails = std::function<prove::Term(prove::Query&, const prove::Term& offset)>;
  Answer ask(const ptx::Access& access, flow::BaseId base, uint32_t start_bytes, const Fails& fails);

  Analyses* analyses_;
  std::optional<prove::Kernel> kernel_;  // from the first question on
  unsigned questions_left_;
  SolverBudget budget_;
};

}  // namespace ptxkit::rules
