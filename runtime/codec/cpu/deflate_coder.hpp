// Deflate (RFC 1951) and what wraps it: gzip (RFC 1952) and zlib (RFC 1950). Whole members by libdeflate, which codes
// only what lies in memory as a whole; streams of any length by zlib.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/cpu/coder_item.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::codec {

// libdeflate's levels: 1 is fast, 6 the usual one, 12 the slowest.
std::string libdeflate_name();  // "libdeflate 1.14"
inline constexpr int kLeastDeflateLevel = 1, kUsualDeflateLevel = 6, kGreatestDeflateLevel = 12;

enum class DeflateWrapper : uint8_t { none, zlib, gzip };

// The most bytes of an item of `raw_bytes`.
size_t deflate_bound(DeflateWrapper wrapper, size_t raw_bytes);
// What a thread needs to compress.
size_t deflating_bytes(int level);

// A member that is decoded as a whole.
struct DeflatedMember {
  Bytes deflated;
  MutableBytes room;  // for exactly the raw bytes
  uint32_t crc = 0;   // expected
  // Results:
  bool is_damaged = false, is_bad_checksum = false;
};

// May be used by several threads at a time. `executor` must outlive it.
class DeflateCoder {
 public:
  explicit DeflateCoder(Executor& executor);
  ~DeflateCoder();

  std::string description() const;  // for users: "cpu, 16 threads, libdeflate 1.14"

  // Items of their own, in parallel. A gzip item to be decompressed may have several members.
  void compress(std::span<CoderItem> items, DeflateWrapper wrapper, int level);
  void decompress(std::span<CoderItem> items, DeflateWrapper wrapper);
  // Members of BGZF (GzipCoding).
  void encode(std::span<BlockToEncode> members, int level);
  void decode(std::span<DeflatedMember> members);

 private:
  struct Contexts;

  Executor& executor_;
  std::unique_ptr<Contexts> contexts_;
};

uint32_t update_crc32(uint32_t crc, Bytes bytes);  // begins with 0

// Decodes a deflate stream of any length, by zlib.
class Inflater {
 public:
  Inflater();
  ~Inflater();
  struct Step {
    size_t consumed = 0, produced = 0;
    bool has_ended = false;
    std::string fault = {};  // zlib's name of what is wrong; empty if nothing is
  };
  void begin();  // a stream
  Step inflate(Bytes input, MutableBytes output);
  static constexpr size_t kMemoryBytes = 48u << 10;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ptxkit::codec
