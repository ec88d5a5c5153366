// What an instruction on registers computes, as a term.
#pragma once

#include <functional>
#include <optional>

#include "analyzer/flow/operation.hpp"
#include "analyzer/prove/query.hpp"

namespace ptxkit::prove {

struct Inputs {
  // An operand of the pool as a number of so many bits; bits that its register lacks are 0.
  std::function<Term(uint32_t pool_index, unsigned width)> operand;
  // What PTX leaves open: a quotient by zero.
  std::function<Term(unsigned width)> unknown;
};

// Exactly what PTX says, wrapping included. Nothing for what is not followed: floating point, packed numbers, carries.
std::optional<Term> computed(Query& query, const flow::Ssa& ssa, const flow::Operation& operation,
                             const Inputs& inputs);

}  // namespace ptxkit::prove
