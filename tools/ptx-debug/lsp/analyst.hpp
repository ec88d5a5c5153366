// Runs the rules on texts in a thread of its own, so that requests are answered meanwhile. A newer text of a document
// replaces one that waits and cancels one that is examined.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "analyzer/analyze/analysis.hpp"

namespace ptxkit::lsp {

// A text of a document. `revision` grows with each text that the server was given.
struct Job {
  std::string uri;
  uint64_t revision = 0;
  std::string text;
};

struct Analyzed {
  std::string uri;
  uint64_t revision = 0;
  std::shared_ptr<const report::FileAnalysis> file;
  bool is_cut = false;  // the time was up before all rules had run
};

class Analyst {
 public:
  Analyst(report::AnalysisOptions options, std::chrono::duration<double> budget);
  ~Analyst();  // waits for the rule that runs
  Analyst(const Analyst&) = delete;
  Analyst& operator=(const Analyst&) = delete;

  void submit(Job job);
  void drop(const std::string& uri);           // of a document that is closed
  std::vector<Analyzed> take();                // what was finished since the last call, without cancelled ones
  int descriptor() const { return pipe_[0]; }  // readable when take() has something
  bool is_busy();

 private:
  void work();
  void examine(Job job);

  report::AnalysisOptions options_;
  std::chrono::duration<double> budget_;
  int pipe_[2] = {-1, -1};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  std::string examined_;  // URI of the text that is examined; empty: none
  std::vector<Analyzed> finished_;
  std::atomic<bool> is_cancelled_ = false;
  bool is_over_ = false;
  std::optional<std::jthread> thread_;
};

}  // namespace ptxkit::lsp
