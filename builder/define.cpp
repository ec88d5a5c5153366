// Checks of a KernelSpec, and the text of size expressions.
#include "builder/define.hpp"

#include "builder/error.hpp"

namespace ptxkit::dsl {

std::string SizeExpr::text() const {
  std::string text;
  const auto add = [&](const std::string& term) { text += text.empty() ? term : "+" + term; };
  for (const Term& term : terms_) {
    if (term.times == 0) continue;
    std::string one(1, term.variable);
    if (term.over != 1) one += "/" + std::to_string(term.over);
    if (term.times != 1) one += "*" + std::to_string(term.times);
    add(one);
  }
  if (plus_ != 0 || text.empty()) add(std::to_string(plus_));
  return text;
}

void SizeExpr::refuse_quotient() {
  throw DslError("a buffer size divides what is not N or M, or by 0", Where::current(), "use N/int or N/int*int");
}

void SizeExpr::refuse_sum() {
  throw DslError("a buffer size is a sum of more than four multiples of N and M", Where::current(), "use fewer");
}

void detail::check_spec(const KernelSpec& spec, Where where) {
  if (spec.name.empty() || spec.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos ||
      (spec.name[0] >= '0' && spec.name[0] <= '9')) {
    throw DslError("the kernel's name is '" + spec.name + "'", where, "use lower case letters, digits and underscores");
  }
  if (spec.block == 0 || spec.block % 32 != 0 || spec.block > 1024) {
    throw DslError(spec.name + " has a CTA of " + std::to_string(spec.block) + " threads", where,
                   "use a multiple of 32 from 32 to 1024");
  }
}

}  // namespace ptxkit::dsl
