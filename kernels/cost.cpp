// A parser for the cost grammar. The block is lines `key: value` between `@pz_cost {` and `}`, each a `//` comment. A
// comma at the end of a line is allowed.
#include "kernels/cost.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace ptxkit::kernels {
namespace {

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

tl::unexpected<Error> bad_expression(std::string_view text) {
  return fail(
      fmt::format("cost expression `{}` is no sum of: integer, N, N*integer, N/integer, N/integer*integer, and M "
                  "for N",
                  text));
}

tl::unexpected<Error> bad_line(size_t line, std::string what) {
  return fail(std::move(what), fmt::format("line {}", line),
              "the block is written by the kernel's definition; rebuild it");
}

Result<std::vector<CostBuffer>> parse_buffers(std::string_view text) {
  std::vector<CostBuffer> buffers;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = trim(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos || trim(item.substr(0, equals)).empty()) {
      return fail(fmt::format("expected `name=expression` in buffers, found `{}`", item));
    }
    auto bytes = parse_cost_expression(trim(item.substr(equals + 1)));
    if (!bytes) return tl::unexpected(bytes.error());
    buffers.push_back({std::string(trim(item.substr(0, equals))), *bytes});
  }
  return buffers;
}

// Sets one field of `cost`. Fails with a message if the value does not parse.
Result<void> set_field(KernelCost& cost, std::string_view key, std::string_view value) {
  if (key == "threads_per_element") {
    const auto number = parse_number<double>(value);
    if (!number || !std::isfinite(*number) || *number <= 0) {
      return fail(fmt::format("threads_per_element is a number above 0, found `{}`", value));
    }
    cost.threads_per_element = *number;
  } else if (key == "passes") {
    const auto number = parse_number<uint32_t>(value);
    if (!number || *number == 0) return fail(fmt::format("passes is an integer above 0, found `{}`", value));
    cost.passes = *number;
  } else if (key == "buffers") {
    auto buffers = parse_buffers(value);
    if (!buffers) return tl::unexpected(buffers.error());
    cost.buffers = std::move(*buffers);
  } else if (key == "local_mem") {
    const auto number = parse_number<uint64_t>(value);
    if (!number) return fail(fmt::format("local_mem is a byte count, found `{}`", value));
    cost.local_mem_bytes = *number;
  } else if (key == "note") {
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    cost.note = value;
  } else {
    return fail(fmt::format("unknown key `{}`; expected threads_per_element, passes, buffers, local_mem or note", key));
  }
  return {};
}

bool multiply_add(uint64_t a, uint64_t b, uint64_t c, uint64_t& result) {
  return !__builtin_mul_overflow(a, b, &result) && !__builtin_add_overflow(result, c, &result);
}

// integer | V | V*integer | V/integer | V/integer*integer
std::optional<CostTerm> parse_term(std::string_view text) {
  if (const auto constant = parse_number<uint64_t>(text)) return CostTerm{0, *constant};
  if (text.empty() || (text[0] != 'N' && text[0] != 'M')) return std::nullopt;
  CostTerm term{text[0], 1};
  text.remove_prefix(1);
  if (text.starts_with('/')) {
    const auto divisor = parse_number<uint64_t>(text.substr(1, text.find('*') - 1));
    if (!divisor || *divisor == 0) return std::nullopt;
    term.divisor = *divisor;
    text = text.substr(std::min(text.find('*'), text.size()));
  }
  if (text.empty()) return term;
  const auto times = text[0] == '*' ? parse_number<uint64_t>(text.substr(1)) : std::nullopt;
  if (!times) return std::nullopt;
  term.times = *times;
  return term;
}

}  // namespace

std::string CostExpression::text() const {
  std::string text;
  for (const CostTerm& term : terms) {
    if (!text.empty()) text += '+';
    if (term.variable == 0) {
      text += std::to_string(term.times);
      continue;
    }
    text += term.variable;
    if (term.divisor != 1) text += fmt::format("/{}", term.divisor);
    if (term.times != 1) text += fmt::format("*{}", term.times);
  }
  return text;
}

Result<uint64_t> CostExpression::evaluate(const LaunchSize& launch) const {
  uint64_t total = 0;
  for (const CostTerm& term : terms) {
    uint64_t of = term.variable == 'N'   ? launch.input_bytes
                  : term.variable == 'M' ? launch.coded_bytes
                                         : launch.item_count;
    bool fits = true;
    if (term.divisor != 1 && of != 0) {
      if (launch.item_count == 0 || of % launch.item_count != 0) {
        return fail(fmt::format("{} items of {} bytes are not as large as each other, and {} counts for each",
                                launch.item_count, of, text()));
      }
      const uint64_t item_bytes = of / launch.item_count;
      const uint64_t quotient = item_bytes / term.divisor + (item_bytes % term.divisor != 0);
      fits = multiply_add(quotient, launch.item_count, 0, of);
    }
    if (!fits || !multiply_add(of, term.times, total, total)) {
      return fail(fmt::format("{} bytes of input in {} items need more than 2^64 bytes of buffer", launch.input_bytes,
                              launch.item_count));
    }
  }
  return total;
}

Result<CostExpression> parse_cost_expression(std::string_view text) {
  CostExpression sum;
  for (std::string_view rest = text;;) {
    const size_t plus = rest.find('+');
    const auto term = parse_term(rest.substr(0, plus));
    if (!term) return bad_expression(text);
    sum.terms.push_back(*term);
    if (plus == std::string_view::npos) return sum;
    rest = rest.substr(plus + 1);
  }
}

Result<uint64_t> KernelCost::memory_bytes(const LaunchSize& launch) const {
  uint64_t total = 0;
  for (const CostBuffer& buffer : buffers) {
    auto bytes = buffer.bytes.evaluate(launch);
    if (!bytes) return bytes;
    if (__builtin_add_overflow(total, *bytes, &total)) {
      return fail(fmt::format("{} bytes of input need more than 2^64 bytes of buffers", launch.input_bytes));
    }
  }
  return total;
}

const CostBuffer* KernelCost::find_buffer(std::string_view name) const {
  const auto found =
      std::find_if(buffers.begin(), buffers.end(), [&](const CostBuffer& one) { return one.name == name; });
  return found == buffers.end() ? nullptr : &*found;
}

Result<uint64_t> KernelCost::thread_count(uint64_t input_bytes) const {
  constexpr double kTwoTo64 = 18446744073709551616.0;
  const double of_a_pass = std::trunc(threads_per_element * static_cast<double>(input_bytes));
  uint64_t threads = 0;
  if (of_a_pass >= kTwoTo64 || __builtin_mul_overflow(static_cast<uint64_t>(of_a_pass), passes, &threads)) {
    return fail(fmt::format("{} bytes of input need more than 2^64 threads", input_bytes));
  }
  return threads;
}

Result<KernelCost> parse_kernel_cost(std::string_view ptx) {
  KernelCost cost;
  bool inside = false, found = false;
  size_t line_number = 0;
  while (!ptx.empty()) {
    ++line_number;
    const size_t newline = ptx.find('\n');
    std::string_view line = trim(ptx.substr(0, newline));
    ptx = newline == std::string_view::npos ? std::string_view{} : ptx.substr(newline + 1);
    const bool comment = line.substr(0, 2) == "//";
    if (comment) line = trim(line.substr(2));
    if (comment && !inside && line.substr(0, 8) == "@pz_cost") {
      if (found) return bad_line(line_number, "a second @pz_cost block; expected one kernel");
      if (trim(line.substr(8)) != "{")
        return bad_line(line_number, fmt::format("expected `@pz_cost {{`, found `{}`", line));
      inside = found = true;
      continue;
    }
    if (!inside) continue;
    if (!comment) return bad_line(line_number, "the @pz_cost block is not closed by `// }`");
    if (line == "}") {
      inside = false;
      continue;
    }
    if (line.empty()) continue;
    if (line.back() == ',') line = trim(line.substr(0, line.size() - 1));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos)
      return bad_line(line_number, fmt::format("expected `key: value`, found `{}`", line));
    if (auto set = set_field(cost, trim(line.substr(0, colon)), trim(line.substr(colon + 1))); !set) {
      return bad_line(line_number, set.error().what);
    }
  }
  if (!found) return fail("no @pz_cost block", "", "declare KernelSpec::cost in the kernel's definition");
  if (inside) return bad_line(line_number, "the @pz_cost block is not closed by `// }`");
  if (cost.threads_per_element == 0) return fail("the @pz_cost block has no threads_per_element");
  if (cost.buffers.empty()) return fail("the @pz_cost block has no buffers");
  return cost;
}

}  // namespace ptxkit::kernels
