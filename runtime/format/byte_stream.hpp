// Where bytes come from and where they go: the two interfaces that the frame reader and the codec streams work on, with
// the three kinds there are (a file descriptor, memory, nowhere). Errors carry the name of the file, never a bare
// errno.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "support/result.hpp"

namespace ptxkit::format {

using Bytes = std::span<const std::uint8_t>;
using MutableBytes = std::span<std::uint8_t>;

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Reads until `into` is full or the input ends; fewer bytes than asked for means the end.
  virtual Result<std::size_t> read(MutableBytes into) = 0;
  virtual const std::string& name() const = 0;
};

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // All of `bytes` or an error.
  virtual Result<void> write(Bytes bytes) = 0;
};

// A descriptor that somebody else opened and closes. `name` is what error messages call it.
class DescriptorSource final : public ByteSource {
 public:
  DescriptorSource(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}
  Result<std::size_t> read(MutableBytes into) override;
  const std::string& name() const override { return name_; }

 private:
  int descriptor_;
  std::string name_;
};

class DescriptorSink final : public ByteSink {
 public:
  DescriptorSink(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}
  Result<void> write(Bytes bytes) override;

 private:
  int descriptor_;
  std::string name_;
};

class MemorySource final : public ByteSource {
 public:
  MemorySource(Bytes bytes, std::string name) : rest_(bytes), name_(std::move(name)) {}
  Result<std::size_t> read(MutableBytes into) override;
  const std::string& name() const override { return name_; }

 private:
  Bytes rest_;
  std::string name_;
};

class MemorySink final : public ByteSink {
 public:
  Result<void> write(Bytes bytes) override;
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }
  std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
};

// Accepts everything and keeps nothing: `ptx-pack -t`.
class NullSink final : public ByteSink {
 public:
  Result<void> write(Bytes) override { return {}; }
};

}  // namespace ptxkit::format
