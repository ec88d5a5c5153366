// What an object of the library owns: threads, the backend that runs LZ4, coders of `.ptz` blocks.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/codec/select_backend.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/library/lz4.hpp"

namespace ptxkit::library {

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> open(Lz4Settings settings);

  codec::Executor& executor() { return executor_; }
  codec::Backend& backend() { return *backend_; }
  // Whether a GPU was asked for, alone or beside the CPU.
  bool prefers_device() const { return settings_.where == Where::gpu || settings_.where == Where::both; }

  // A coder of blocks for one stream at a time. It is kept for the next stream, because starting a GPU is slow.
  class BorrowedCoder {
   public:
    BorrowedCoder(BorrowedCoder&&) noexcept = default;
    BorrowedCoder& operator=(BorrowedCoder&&) = delete;
    ~BorrowedCoder();
    codec::BlockCoder& operator*() const { return *coder_; }

   private:
    friend class Engine;
    BorrowedCoder(Engine& engine, std::unique_ptr<codec::BlockCoder> coder)
        : engine_(engine), coder_(std::move(coder)) {}
    Engine& engine_;
    std::unique_ptr<codec::BlockCoder> coder_;
  };
  Result<BorrowedCoder> block_coder();

 private:
  explicit Engine(Lz4Settings settings);
  codec::BackendRequest request();

  Lz4Settings settings_;
  codec::Executor executor_;
  std::optional<codec::Executor> copies_;    // of Where::both
  std::unique_ptr<codec::Backend> backend_;  // it uses the members above
  std::mutex mutex_;
  std::vector<std::unique_ptr<codec::BlockCoder>> idle_coders_;
  size_t coder_count_ = 0;
};

}  // namespace ptxkit::library
