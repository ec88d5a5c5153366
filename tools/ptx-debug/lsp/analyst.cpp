#include "tools/ptx-debug/lsp/analyst.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "analyzer/analyze/suppression.hpp"
#include "support/check.hpp"
#include "support/thread.hpp"

namespace ptxkit::lsp {

Analyst::Analyst(report::AnalysisOptions options, std::chrono::duration<double> budget)
    : options_(std::move(options)), budget_(budget) {
  PTXKIT_CHECK(::pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) == 0, "the system gives no pipe");
  thread_ = try_thread([this] { work(); });
}

Analyst::~Analyst() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    is_cancelled_ = true;
  }
  changed_.notify_all();
  if (thread_) thread_->join();
  ::close(pipe_[0]);
  ::close(pipe_[1]);
}

void Analyst::submit(Job job) {
  if (!thread_) return examine(std::move(job));
  {
    const std::lock_guard lock(mutex_);
    if (examined_ == job.uri) is_cancelled_ = true;
    std::erase_if(waiting_, [&](const Job& each) { return each.uri == job.uri; });
    waiting_.push_back(std::move(job));
  }
  changed_.notify_all();
}

void Analyst::drop(const std::string& uri) {
  const std::lock_guard lock(mutex_);
  if (examined_ == uri) is_cancelled_ = true;
  std::erase_if(waiting_, [&](const Job& each) { return each.uri == uri; });
}

std::vector<Analyzed> Analyst::take() {
  char bytes[64];
  while (::read(pipe_[0], bytes, sizeof bytes) > 0) continue;
  const std::lock_guard lock(mutex_);
  return std::exchange(finished_, {});
}

bool Analyst::is_busy() {
  const std::lock_guard lock(mutex_);
  return !examined_.empty();
}

void Analyst::work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_over_ || !waiting_.empty(); });
    if (is_over_) return;
    Job job = std::move(waiting_.front());
    waiting_.pop_front();
    examined_ = job.uri;
    is_cancelled_ = false;
    lock.unlock();
    examine(std::move(job));
  }
}

void Analyst::examine(Job job) {
  using Clock = std::chrono::steady_clock;
  Analyzed done{std::move(job.uri), job.revision, nullptr, false};
  const auto end = Clock::now() + budget_;
  report::AnalysisOptions options = options_;
  options.is_cancelled = [&] {
    if (Clock::now() >= end) done.is_cut = true;
    return done.is_cut || is_cancelled_;
  };
  // The path begins the remarks on comments, which have a line behind it.
  auto file = std::make_shared<report::FileAnalysis>(report::analyze(std::move(job.text), "", options));
  auto nothing = report::Baseline();
  const report::SourceLine no_source = [](const auto&, const auto&, uint32_t) { return std::nullopt; };
  report::suppress(*file, options, nothing, no_source);
  done.file = std::move(file);
  {
    const std::lock_guard lock(mutex_);
    if (!is_cancelled_) finished_.push_back(std::move(done));
    examined_.clear();
  }
  while (::write(pipe_[1], "", 1) < 0 && errno == EINTR) continue;  // a full pipe is readable already
}

}  // namespace ptxkit::lsp
