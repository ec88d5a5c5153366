#include "runtime/codec/threads/trace.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "support/plural.hpp"

namespace ptxkit::scheduler {
namespace {

using Interval = std::pair<double, double>;

std::string json_string(std::string_view text) {
  std::string all = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') {
      all += '\\';
      all += letter;
    } else {
      all += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
    }
  }
  return all + '"';
}

// Sorted, those that touch joined, cut to [begin, end].
std::vector<Interval> joined(std::vector<Interval> all, double begin, double end) {
  std::sort(all.begin(), all.end());
  std::vector<Interval> out;
  for (auto [from, to] : all) {
    from = std::max(from, begin);
    to = std::min(to, end);
    if (from >= to) continue;
    if (!out.empty() && from <= out.back().second) {
      out.back().second = std::max(out.back().second, to);
    } else {
      out.emplace_back(from, to);
    }
  }
  return out;
}

double length_of(const std::vector<Interval>& all) {
  double sum = 0;
  for (const auto& [from, to] : all) sum += to - from;
  return sum;
}

// The longest part of [begin, end] that none of them covers.
Interval longest_gap(const std::vector<Interval>& all, double begin, double end) {
  Interval longest{begin, begin};
  double at = begin;
  const auto look = [&](double until) {
    if (until - at > longest.second - longest.first) longest = {at, until};
  };
  for (const auto& [from, to] : all) {
    look(from);
    at = to;
  }
  look(end);
  return longest;
}

}  // namespace

Trace::Trace() { (void)line(kHostProcess, "main"); }

double Trace::now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - origin_).count(); }

Trace::LineNumber Trace::line_locked(const std::string& process, const std::string& name) {
  unsigned process_number = 0, process_count = 0, number = 0;
  bool is_known = false;
  for (size_t i = 0; i < lines_.size(); ++i) {
    process_count = std::max(process_count, lines_[i].process_number + 1);
    if (lines_[i].process != process) continue;
    if (lines_[i].name == name) return i;
    is_known = true;
    process_number = lines_[i].process_number;
    number = std::max(number, lines_[i].number + 1);
  }
  lines_.push_back({process, name, is_known ? process_number : process_count, number});
  return lines_.size() - 1;
}

Trace::LineNumber Trace::line(const std::string& process, const std::string& name) {
  std::lock_guard lock(mutex_);
  return line_locked(process, name);
}

void Trace::name_thread(const std::string& name) {
  std::lock_guard lock(mutex_);
  of_threads_[std::this_thread::get_id()] = line_locked(kHostProcess, name);
}

void Trace::add(const Span& span) {
  std::lock_guard lock(mutex_);
  try {
    spans_.push_back(span);
  } catch (...) {  // NOLINT(bugprone-empty-catch): without memory the span is lost, and not the work
  }
}

void Trace::add_here(const char* name, double begin, int64_t batch) {
  const double end = now();
  std::unique_lock lock(mutex_);
  const auto found = of_threads_.find(std::this_thread::get_id());
  const LineNumber line = found == of_threads_.end() ? 0 : found->second;
  lock.unlock();
  add({line, name, begin, end, batch});
}

std::vector<Trace::Line> Trace::lines() const {
  std::lock_guard lock(mutex_);
  return lines_;
}

std::vector<Trace::Span> Trace::spans() const {
  std::lock_guard lock(mutex_);
  return spans_;
}

std::string Trace::json() const {
  const std::vector<Line> lines = this->lines();
  std::vector<Span> spans = this->spans();
  // Of two that begin together the longer one is around the other.
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return std::pair(a.begin, -a.end) < std::pair(b.begin, -b.end);
  });
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  std::set<unsigned> named;
  for (const Line& line : lines) {
    if (named.insert(line.process_number).second) {
      text += fmt::format("{{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": {}, \"args\": {{\"name\": {}}}}},\n",
                          line.process_number, json_string(line.process));
    }
    text += fmt::format(
        "{{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": {}, \"tid\": {}, \"args\": {{\"name\": {}}}}},\n",
        line.process_number, line.number, json_string(line.name));
  }
  for (const Span& span : spans) {
    const Line& line = lines[span.line];
    text += fmt::format(
        "{{\"ph\": \"X\", \"name\": {}, \"pid\": {}, \"tid\": {}, \"ts\": {:.3f}, \"dur\": {:.3f}{}}},\n",
        json_string(span.name), line.process_number, line.number, span.begin * 1e6, (span.end - span.begin) * 1e6,
        span.batch < 0 ? std::string() : fmt::format(", \"args\": {{\"batch\": {}}}", span.batch));
  }
  text.resize(text.size() - 2);  // there is a line at the least
  return text + "\n]}\n";
}

Utilisation utilisation(const Trace& trace, double begin, double end) {
  const std::vector<Trace::Line> lines = trace.lines();
  std::map<std::pair<std::string, std::string>, std::vector<Interval>> of_devices;  // by process and name of span
  std::map<Trace::LineNumber, std::vector<Interval>> of_pool;
  std::vector<Interval> kernels, pool;
  for (const Trace::Span& span : trace.spans()) {
    const Trace::Line& line = lines[span.line];
    if (line.process != kHostProcess) {
      of_devices[{line.process, span.name}].emplace_back(span.begin, span.end);
      if (span.name == std::string_view(kKernelsSpan)) kernels.emplace_back(span.begin, span.end);
    } else if (span.name == std::string_view(kLoopSpan)) {
      of_pool[span.line].emplace_back(span.begin, span.end);
      pool.emplace_back(span.begin, span.end);
    }
  }
  Utilisation all;
  const double seconds = std::max(end - begin, 1e-9);
  for (const auto& [what, intervals] : of_devices) {
    all.rows.push_back(
        {fmt::format("{} of {}", what.second, what.first), length_of(joined(intervals, begin, end)) / seconds});
  }
  const auto thread_count = std::count_if(lines.begin(), lines.end(), [](const Trace::Line& line) {
    return line.process == kHostProcess && line.name.starts_with("pool ");
  });
  if (thread_count != 0) {
    double busy = 0;
    for (const auto& [line, intervals] : of_pool) busy += length_of(joined(intervals, begin, end));
    all.rows.push_back({plural(static_cast<size_t>(thread_count), "thread") + " of the pool",
                        busy / seconds / static_cast<double>(thread_count)});
  }
  all.gap_of = kernels.empty() ? "thread of the pool at work" : "kernel running";
  const auto [from, to] = longest_gap(joined(kernels.empty() ? pool : kernels, begin, end), begin, end);
  all.gap_begin = from - begin;
  all.gap_seconds = to - from;
  return all;
}

}  // namespace ptxkit::scheduler
