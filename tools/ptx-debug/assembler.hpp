// `analyze --ptxas`: runs NVIDIA's assembler on a module and reads the register counts of its kernels.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "analyzer/ptx/tree.hpp"
#include "support/result.hpp"

namespace ptxkit::tools {

class Assembler {
 public:
  // `program` is run with --version. Error: it does not run.
  static Result<Assembler> at(std::string program);

  // Registers per thread at -O3 for the module's own target; nothing where the assembler rejects the module.
  // Thread-safe. Results are cached; two threads that ask for a new module at the same time both assemble it.
  std::optional<uint32_t> registers(const ptx::Module& module, const std::string& kernel);

 private:
  using Counts = std::map<std::string, uint32_t>;  // by kernel name

  explicit Assembler(std::string program) : program_(std::move(program)) {}
  Counts assembled(const ptx::Module& module) const;

  std::string program_;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
  std::map<size_t, Counts> known_;  // by the hash of the module's text
};

}  // namespace ptxkit::tools
