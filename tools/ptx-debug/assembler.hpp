// `analyze --ptxas`: what NVIDIA's assembler says of the kernels of a module.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "analyzer/ptx/tree.hpp"
#include "support/result.hpp"

namespace ptxkit::tools {

class Assembler {
 public:
  // Error: `program` does not run.
  static Result<Assembler> at(std::string program);

  // Registers of a thread at -O3 for the module's own target; nothing where the assembler does not take the module.
  // Thread-safe: a module is assembled once, and its answers are kept.
  std::optional<uint32_t> registers(const ptx::Module& module, const std::string& kernel);

 private:
  using Counts = std::map<std::string, uint32_t>;  // by kernel

  explicit Assembler(std::string program) : program_(std::move(program)) {}
  Counts assembled(const ptx::Module& module) const;

  std::string program_;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
  std::map<size_t, Counts> known_;  // by the hash of the text
};

}  // namespace ptxkit::tools
