// Records what ran when: spans on the lines of threads and devices, for a time line and for utilisation.
//
// A span stands for a stage of a batch, a call to a device or a loop of a pool, so recording costs little beside it.
// Without a Trace nothing is measured. docs/scheduling.md lists the names.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ptxkit::scheduler {

class Trace {
 public:
  // A row of the time line.
  struct Line {
    std::string process, name;
    unsigned process_number, number;
  };
  using LineNumber = size_t;
  struct Span {
    LineNumber line;
    const char* name;    // a literal
    double begin, end;   // seconds
    int64_t batch = -1;  // of the stream, counted from 0; -1: none
  };

  Trace();

  // Seconds since the trace began.
  double now() const;
  // Returns the line with that name; creates it on the first call.
  LineNumber line(const std::string& process, const std::string& name);
  // Names the line of the calling thread.
  void name_thread(const std::string& name);

  void add(const Span& span);
  void add_here(const char* name, double begin, int64_t batch = -1);  // on the calling thread's line, until now

  std::vector<Line> lines() const;
  std::vector<Span> spans() const;

  // The trace in Chrome's Trace Event Format, which Perfetto and chrome://tracing display.
  std::string json() const;

 private:
  LineNumber line_locked(const std::string& process, const std::string& name);

  const std::chrono::steady_clock::time_point origin_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;
  std::vector<Line> lines_;
  std::vector<Span> spans_;
  std::map<std::thread::id, LineNumber> of_threads_;
};

// The names of spans. Stages of a stream:
inline constexpr const char *kReadSpan = "read", *kCodeSpan = "code", *kWriteSpan = "write";
// The two halves of "code", between which a device works:
inline constexpr const char *kBeginSpan = "begin", *kFinishSpan = "finish";
inline constexpr const char *kWaitForBatch = "wait for a batch", *kWaitForBuffers = "wait for buffers";
// A thread of a pool, in one loop:
inline constexpr const char* kLoopSpan = "coding";
// A device:
inline constexpr const char *kCopyUpSpan = "copy up", *kKernelsSpan = "kernels", *kCopyDownSpan = "copy down";
// The process of every line that is no device's.
inline constexpr const char* kHostProcess = "host";

// Records its own lifetime as a span on the calling thread's line. Does nothing if `trace` is null.
class SpanHere {
 public:
  SpanHere(Trace* trace, const char* name, int64_t batch = -1)
      : trace_(trace), name_(name), batch_(batch), begin_(trace != nullptr ? trace->now() : 0) {}
  ~SpanHere() {
    if (trace_ != nullptr) trace_->add_here(name_, begin_, batch_);
  }
  SpanHere(const SpanHere&) = delete;
  SpanHere& operator=(const SpanHere&) = delete;

 private:
  Trace* trace_;
  const char* name_;
  int64_t batch_;
  double begin_;
};

// How busy device, copies and pool were during an interval.
struct Utilisation {
  struct Row {
    std::string what;  // "kernels of cuda, device 0, …", "16 threads of the pool"
    double share;      // of the interval; for a pool, of the interval times its threads
  };
  std::vector<Row> rows;
  // The longest part of the interval without a running kernel, or, without a device, without a working thread.
  const char* gap_of = "";
  double gap_begin = 0, gap_seconds = 0;
};
Utilisation utilisation(const Trace& trace, double begin, double end);

}  // namespace ptxkit::scheduler
