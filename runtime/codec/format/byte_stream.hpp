// Where bytes come from and where they go: the interfaces that the readers and the codec streams work on, with the
// three kinds there are (a file descriptor, memory, nowhere). Errors carry the name of the file, never a bare errno.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "support/result.hpp"

namespace ptxkit::format {

using Bytes = std::span<const uint8_t>;
using MutableBytes = std::span<uint8_t>;

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Reads until `into` is full or the input ends; fewer bytes than asked for means the end.
  virtual Result<size_t> read(MutableBytes into) = 0;
  // Likewise at least `least` bytes, and of those behind them what is there without waiting; fewer than `least` means
  // the end. What readers of many small fields ask, so that each of them need not be a call of the system.
  virtual Result<size_t> read_some(MutableBytes into, size_t least) { return read(into.first(least)); }
  // Bytes that read() will give after `at` more, without taking them: as many as there are, and 0 where nobody can know
  // yet, as of a pipe.
  virtual size_t look_ahead(uint64_t /*at*/, MutableBytes /*into*/) const { return 0; }
  virtual const std::string& name() const = 0;
};

// Bytes that are read from any place, in any order.
class RandomAccess {
 public:
  virtual ~RandomAccess() = default;
  virtual uint64_t size_bytes() const = 0;
  // Exactly into.size() bytes from byte `at` on, or an error.
  virtual Result<void> read_at(uint64_t at, MutableBytes into) const = 0;
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
  Result<size_t> read(MutableBytes into) override { return read_some(into, into.size()); }
  Result<size_t> read_some(MutableBytes into, size_t least) override;
  size_t look_ahead(uint64_t at, MutableBytes into) const override;
  const std::string& name() const override { return name_; }

 private:
  int descriptor_;
  std::string name_;
};

// Of a regular file `size_bytes` bytes from byte `begin` on; where the descriptor stands in it does not matter.
class DescriptorFile final : public RandomAccess {
 public:
  DescriptorFile(int descriptor, uint64_t begin, uint64_t size_bytes, std::string name)
      : descriptor_(descriptor), begin_(begin), size_bytes_(size_bytes), name_(std::move(name)) {}
  uint64_t size_bytes() const override { return size_bytes_; }
  Result<void> read_at(uint64_t at, MutableBytes into) const override;
  const std::string& name() const override { return name_; }

 private:
  int descriptor_;
  uint64_t begin_, size_bytes_;
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
  Result<size_t> read(MutableBytes into) override;
  Result<size_t> read_some(MutableBytes into, size_t) override { return read(into); }
  size_t look_ahead(uint64_t at, MutableBytes into) const override;
  const std::string& name() const override { return name_; }

 private:
  Bytes rest_;
  std::string name_;
};

class MemoryFile final : public RandomAccess {
 public:
  MemoryFile(Bytes bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}
  uint64_t size_bytes() const override { return bytes_.size(); }
  Result<void> read_at(uint64_t at, MutableBytes into) const override;
  const std::string& name() const override { return name_; }

 private:
  Bytes bytes_;
  std::string name_;
};

class MemorySink final : public ByteSink {
 public:
  Result<void> write(Bytes bytes) override;
  const std::vector<uint8_t>& bytes() const { return bytes_; }
  std::vector<uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<uint8_t> bytes_;
};

// Accepts everything and keeps nothing: `ptx-pack -t`.
class NullSink final : public ByteSink {
 public:
  Result<void> write(Bytes) override { return {}; }
};

}  // namespace ptxkit::format
