// What threads need to code one item after another, kept from one batch to the next. As many exist as threads have
// worked at the same time.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

namespace ptxkit::codec {

template <class Context>
class ContextPool {
 public:
  // A context that no other thread uses; it goes back to the pool, which must outlive it.
  class Taken {
   public:
    explicit Taken(ContextPool& pool) : pool_(pool), context_(pool.take()) {}
    ~Taken() { pool_.give_back(std::move(context_)); }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    Context& operator*() const { return *context_; }
    Context* operator->() const { return context_.get(); }

   private:
    ContextPool& pool_;
    std::unique_ptr<Context> context_;
  };

 private:
  std::unique_ptr<Context> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        auto context = std::move(free_.back());
        free_.pop_back();
        return context;
      }
      free_.reserve(++count_);  // so that nothing throws in give_back()
    }
    return std::make_unique<Context>();
  }
  void give_back(std::unique_ptr<Context> context) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(context));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Context>> free_;
  size_t count_ = 0;
};

}  // namespace ptxkit::codec
