// Interfaces for input and output of bytes, used by the readers and the codec streams, with three implementations each:
// file descriptor, memory, nothing. Errors carry the name of the file, never a bare errno.
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
  // Reads until `into` is full or the input ends. Fewer bytes than asked for means the end of the input.
  virtual Result<size_t> read(MutableBytes into) = 0;
  // Reads at least `least` bytes, and more if they are available without waiting. Fewer than `least` means the end of
  // the input. Lets readers of many small fields save system calls.
  virtual Result<size_t> read_some(MutableBytes into, size_t least) { return read(into.first(least)); }
  // Copies the bytes that read() will return after `at` further bytes, without consuming them. Returns their number; 0
  // if the source cannot know them yet (a pipe).
  virtual size_t look_ahead(uint64_t /*at*/, MutableBytes /*into*/) const { return 0; }
  virtual const std::string& name() const = 0;
};

// Random access to a sequence of bytes.
class RandomAccess {
 public:
  virtual ~RandomAccess() = default;
  virtual uint64_t size_bytes() const = 0;
  // Reads exactly into.size() bytes from byte `at` on, or fails.
  virtual Result<void> read_at(uint64_t at, MutableBytes into) const = 0;
  virtual const std::string& name() const = 0;
};

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // Writes all of `bytes`, or fails.
  virtual Result<void> write(Bytes bytes) = 0;
};

// Reads from a descriptor, which the caller owns. `name` names it in errors.
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

// `size_bytes` bytes of a regular file from byte `begin` on. The file offset of the descriptor is neither used nor
// changed.
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

// Discards everything: `ptx-pack -t`.
class NullSink final : public ByteSink {
 public:
  Result<void> write(Bytes) override { return {}; }
};

}  // namespace ptxkit::format
