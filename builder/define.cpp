// What a specification must satisfy, and the text of its size expressions.
#include "builder/define.hpp"

#include "builder/error.hpp"

namespace ptxkit::dsl {

std::string SizeExpr::text() const {
  if (times_ == 0) return std::to_string(plus_);
  if (over_ != 1) {
    if (times_ != 1 || plus_ != 0) {
      throw DslError("a buffer size divides N and does more", Where::current(), "use N/int, N*int or N*int+int");
    }
    return "N/" + std::to_string(over_);
  }
  std::string text = times_ == 1 && plus_ == 0 ? "N" : "N*" + std::to_string(times_);
  if (plus_ != 0) text += "+" + std::to_string(plus_);
  return text;
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
