// Zstandard frames for decoders: those of libzstd with many parameters, some made by hand, and damaged ones.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "fkr_tests/cases/corpus.hpp"
#include "kernels/zstd/zstd_bits_reference.hpp"
#include "kernels/zstd/zstd_decode_format.hpp"
#include "kernels/zstd/zstd_fse_reference.hpp"
#include "kernels/zstd/zstd_literals_reference.hpp"
#include "kernels/zstd/zstd_reference.hpp"

namespace ptxkit::testing {

// What libzstd is told beside the level.
struct LibzstdOptions {
  bool with_checksum = false, without_size = false;
  int window_log = 0;      // 0: by the level
  int block_bytes = 0;     // coded; 0: whole blocks. Small ones share tables
  size_t flush_bytes = 0;  // a block ends after so many bytes; 0: where libzstd wants
};

inline Bytes libzstd_frame(const Bytes& raw, int level, const LibzstdOptions& options = {}) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  const auto set = [&](ZSTD_cParameter parameter, int value) {
    if (ZSTD_isError(ZSTD_CCtx_setParameter(context, parameter, value)))
      throw std::runtime_error("ZSTD_CCtx_setParameter");
  };
  set(ZSTD_c_compressionLevel, level);
  set(ZSTD_c_checksumFlag, options.with_checksum);
  set(ZSTD_c_contentSizeFlag, !options.without_size);
  if (options.window_log != 0) set(ZSTD_c_windowLog, options.window_log);
  if (options.block_bytes != 0) set(ZSTD_c_targetCBlockSize, options.block_bytes);
  if (!options.without_size) ZSTD_CCtx_setPledgedSrcSize(context, raw.size());
  Bytes frame(ZSTD_compressBound(raw.size()) + raw.size() / 10 + 1000);
  ZSTD_outBuffer out{frame.data(), frame.size(), 0};
  const size_t step = options.flush_bytes == 0 ? std::max<size_t>(raw.size(), 1) : options.flush_bytes;
  for (size_t at = 0;; at += step) {
    const size_t end = std::min(raw.size(), at + step);
    ZSTD_inBuffer in{raw.data() + at, end - at, 0};
    const size_t left = ZSTD_compressStream2(context, &out, &in, end == raw.size() ? ZSTD_e_end : ZSTD_e_flush);
    if (ZSTD_isError(left) || left != 0) throw std::runtime_error("ZSTD_compressStream2");
    if (end == raw.size()) break;
  }
  ZSTD_freeCCtx(context);
  frame.resize(out.pos);
  return frame;
}

// Contents that give blocks and sections of every kind.
inline std::vector<Bytes> zstd_decode_contents(size_t longest) {
  Bytes skewed = random_bytes(longest / 2, 5);
  for (auto& byte : skewed) byte = byte < 240 ? byte % 5 : byte % 64;
  return {{},
          {7},
          Bytes(20, 'x'),
          matchable_bytes(100, 1),
          matchable_bytes(1000, 2),
          Bytes(longest, 'y'),
          matchable_bytes(longest, 3),
          mixed_content(longest),
          fibonacci_bytes(longest / 3),
          skewed};
}

struct ZstdFrameCase {
  std::string name;
  Bytes item;
  size_t room = 0;
  kernels::BatchStatus status = kernels::BatchStatus::ok;
  std::string_view reason = {};  // of the reference
  Bytes raw = {};                // what it decodes to
};

// --- frames by hand ---

inline Bytes joined(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}
inline Bytes little_endian(uint64_t value, uint32_t count) {
  Bytes bytes;
  for (uint32_t i = 0; i < count; ++i) bytes.push_back(static_cast<uint8_t>(value >> 8 * i));
  return bytes;
}

// A frame without a stated size, its window 2^(10 + log) bytes.
inline Bytes zstd_frame_of(const Bytes& blocks, uint8_t log = 7) {
  return joined({{0x28, 0xB5, 0x2F, 0xFD, 0, static_cast<uint8_t>(log << 3)}, blocks});
}
inline Bytes zstd_block_of(kernels::ZstdBlockType type, const Bytes& content, bool is_last, uint32_t run = 0) {
  const auto size = type == kernels::ZstdBlockType::rle ? run : static_cast<uint32_t>(content.size());
  return joined({little_endian(uint32_t{is_last} | static_cast<uint32_t>(type) << 1 | size << 3, 3), content});
}
inline Bytes zstd_compressed(const Bytes& literals, const Bytes& sequences, bool is_last = true) {
  return zstd_block_of(kernels::ZstdBlockType::compressed, joined({literals, sequences}), is_last);
}

// Sections of raw literals, in each of the three lengths of the header.
inline Bytes zstd_raw_literals(const Bytes& literals, uint32_t header_bytes = 2) {
  const auto size = static_cast<uint32_t>(literals.size());
  const uint32_t header = header_bytes == 1 ? size << 3 : size << 4 | (header_bytes == 2 ? 1 : 3) << 2;
  return joined({little_endian(header, header_bytes), literals});
}
inline Bytes zstd_run_literals(uint32_t size, uint8_t byte, uint32_t header_bytes = 2) {
  const uint32_t header = header_bytes == 1 ? size << 3 : size << 4 | (header_bytes == 2 ? 1 : 3) << 2;
  return joined({little_endian(header | 1, header_bytes), {byte}});
}
// The head of a section with codes, with `format` of the sizes.
inline Bytes zstd_coded_literals(kernels::ZstdLiteralsType type, uint32_t format, uint32_t size, const Bytes& content) {
  const uint32_t width = format < 2 ? 10 : format == 2 ? 14 : 18;
  const uint64_t header =
      static_cast<uint64_t>(type) | format << 2 | uint64_t{size} << 4 | uint64_t{content.size()} << (4 + width);
  return joined({little_endian(header, width == 10 ? 3 : width == 14 ? 4 : 5), content});
}
// The one that our encoder makes of literals, which has to have codes.
inline Bytes zstd_own_literals(const Bytes& literals) {
  Bytes section(kernels::zstd_literals_bound(literals.size()));
  section.resize(kernels::zstd_literals_reference(literals, section).size_bytes);
  if ((section[0] & 3) != 2) throw std::runtime_error("literals without codes");
  return section;
}
// The same literals with the codes of the section before.
inline Bytes zstd_treeless(const Bytes& literals) {
  const Bytes own = zstd_own_literals(literals);
  const uint32_t format = own[0] >> 2 & 3, header = format == 0 ? 3 : format == 2 ? 4 : 5;
  const uint32_t tree = 1 + (own[header] < 128 ? own[header] : (own[header] - 127 + 1) / 2);
  return zstd_coded_literals(kernels::ZstdLiteralsType::treeless, format, static_cast<uint32_t>(literals.size()),
                             {own.begin() + header + tree, own.end()});
}

// A sequence by its codes and the values behind them.
struct CodedSequence {
  uint32_t literal_code, literal_extra, offset_code, offset_extra, match_code, match_extra;
};
struct TableOfKind {
  kernels::ZstdTableMode mode = kernels::ZstdTableMode::predefined;
  kernels::ZstdDistribution distribution = {};  // of `own`, and what `repeat` repeats; one symbol of 1 << bits: `rle`
};

// A section with such tables, in the order of ZstdKind.
inline Bytes zstd_sequences_of(const std::vector<CodedSequence>& sequences, std::array<TableOfKind, 3> tables = {}) {
  using namespace kernels;
  const auto count = static_cast<uint32_t>(sequences.size());
  Bytes section = count < 128 ? Bytes{static_cast<uint8_t>(count)}
                  : count < kZstdLongSequenceCount
                      ? Bytes{static_cast<uint8_t>((count >> 8) + 128), static_cast<uint8_t>(count)}
                      : joined({{255}, little_endian(count - kZstdLongSequenceCount, 2)});
  if (count == 0) return section;
  uint32_t modes = 0;
  for (const auto& table : tables) modes = modes << 2 | static_cast<uint32_t>(table.mode);
  section.push_back(static_cast<uint8_t>(modes << 2));
  std::vector<ZstdFseEncoder> encoders;
  for (uint32_t kind = 0; kind < kZstdKinds; ++kind) {
    auto& [mode, distribution] = tables[kind];
    if (mode == ZstdTableMode::predefined) distribution = zstd_predefined(static_cast<ZstdKind>(kind));
    if (mode == ZstdTableMode::own) section = joined({section, zstd_describe(distribution)});
    if (mode == ZstdTableMode::rle) section.push_back(static_cast<uint8_t>(distribution.frequencies.size() - 1));
    encoders.emplace_back(distribution);
  }
  const auto code = [](const CodedSequence& sequence, uint32_t kind) {
    return kind == 0 ? sequence.literal_code : kind == 1 ? sequence.offset_code : sequence.match_code;
  };
  ZstdBits bits;
  for (size_t i = sequences.size(); i-- > 0;) {
    const CodedSequence& sequence = sequences[i];
    for (const uint32_t kind : {1, 2, 0}) {
      if (i + 1 == sequences.size()) {
        encoders[kind].begin(code(sequence, kind));
      } else {
        const auto field = encoders[kind].code(code(sequence, kind));
        bits.append(field.value, field.bits);
      }
    }
    bits.append(sequence.literal_extra, zstd_literal_length_code(sequence.literal_code).bits);
    bits.append(sequence.match_extra, zstd_match_length_code(sequence.match_code).bits);
    bits.append(sequence.offset_extra, sequence.offset_code);
  }
  for (const uint32_t kind : {2, 1, 0}) {
    const auto field = encoders[kind].end();
    bits.append(field.value, field.bits);
  }
  return joined({section, std::move(bits).marked()});
}
// The table of one symbol.
inline TableOfKind zstd_only(uint32_t symbol) {
  kernels::ZstdDistribution distribution{0, std::vector<int>(symbol + 1)};
  distribution.frequencies.back() = 1;
  return {kernels::ZstdTableMode::rle, distribution};
}

inline std::vector<ZstdFrameCase> zstd_frames_by_hand();

// An item whose damage is of interest.
struct ZstdItemCase {
  std::string name;
  Bytes item, raw;
};
inline std::vector<ZstdItemCase> zstd_items_to_damage(size_t size = 6000) {
  std::vector<ZstdItemCase> items;
  Bytes columns;
  for (uint32_t i = 0; columns.size() < size; ++i)
    columns = joined({columns, {'a', 'b', static_cast<uint8_t>(i * i % 7), 0, static_cast<uint8_t>(i * 37 % 251), 1}});
  for (const Bytes& raw : {matchable_bytes(size, 1), columns, fibonacci_bytes(size), mixed_content(200)}) {
    for (const int level : {1, 9, 19}) {
      const std::string name = std::to_string(raw.size()) + " bytes, level " + std::to_string(level);
      items.push_back({name, libzstd_frame(raw, level), raw});
      items.push_back(
          {name + ", small blocks", libzstd_frame(raw, level, {.with_checksum = true, .block_bytes = 1340}), raw});
      items.push_back({name + ", flushed",
                       libzstd_frame(raw, level, {.without_size = true, .window_log = 10, .flush_bytes = 900}), raw});
    }
    items.push_back({"ours", kernels::zstd_frame_reference(raw, kernels::kHighVariant, false), raw});
  }
  for (const ZstdFrameCase& frame : zstd_frames_by_hand()) {
    if (frame.status == kernels::BatchStatus::ok && frame.item.size() < 3000)
      items.push_back({frame.name, frame.item, frame.raw});
  }
  return items;
}

// The item with a bit, a byte or its end changed, mostly near its start, where the headers are.
inline Bytes damaged_zstd(Bytes item, std::mt19937& random) {
  const auto times = static_cast<uint32_t>(1 + random() % 4 / 3);
  for (uint32_t i = 0; i < times && !item.empty(); ++i) {
    const size_t area = random() % 2 == 0 ? std::min<size_t>(item.size(), 60) : item.size();
    uint8_t& byte = item[random() % area];
    switch (random() % 8) {
      case 0:
        item.resize(random() % item.size());
        break;
      case 1:
        byte = static_cast<uint8_t>(random());
        break;
      case 2:
        byte = random() % 2 == 0 ? 0 : 255;
        break;
      case 3:
        item.insert(item.begin() + (&byte - item.data()), static_cast<uint8_t>(random()));
        break;
      default:
        byte = static_cast<uint8_t>(byte ^ 1u << random() % 8);
    }
  }
  return item;
}

inline std::vector<ZstdFrameCase> zstd_frames_by_hand() {
  using namespace kernels;
  using Type = ZstdBlockType;
  using Mode = ZstdTableMode;
  std::vector<ZstdFrameCase> cases;
  const auto good = [&](std::string name, Bytes item, Bytes raw) {
    const size_t room = raw.size();
    cases.push_back({std::move(name), std::move(item), room, BatchStatus::ok, {}, std::move(raw)});
  };
  const auto bad = [&](std::string_view reason, Bytes item, BatchStatus status = BatchStatus::cannot_decompress,
                       size_t room = 3000) {
    cases.push_back({std::string(reason), std::move(item), room, status, reason, {}});
  };
  const auto text = [](std::string_view characters) { return Bytes(characters.begin(), characters.end()); };
  const Bytes abc = text("abc"), magic = {0x28, 0xB5, 0x2F, 0xFD};
  const Bytes raw_block = zstd_block_of(Type::raw, abc, true), abc_frame = zstd_frame_of(raw_block);
  const Bytes skippable = joined({{0x5E, 0x2A, 0x4D, 0x18}, little_endian(5, 4), text("12345")});
  const Bytes skewed = [] {
    Bytes bytes = random_bytes(700, 3);
    for (auto& byte : bytes) byte = static_cast<uint8_t>('a' + byte % 7 * (byte % 3) / 2);
    return bytes;
  }();
  const Bytes half(skewed.begin(), skewed.begin() + 350);

  // Headers.
  good("raw", abc_frame, abc);
  good("frames and skippable frames", joined({skippable, abc_frame, skippable, abc_frame}), text("abcabc"));
  good("nothing but a skippable frame", skippable, {});
  good("a size of one byte", joined({magic, {0x20, 3}, raw_block}), abc);
  good("a size of eight bytes", joined({magic, {0xE0}, little_endian(3, 8), raw_block}), abc);
  good("a size of four bytes, and a window", joined({magic, {0x80, 0}, little_endian(3, 4), raw_block}), abc);
  good("a size of two bytes", joined({magic, {0x60, 44, 0}, zstd_block_of(Type::rle, {'x'}, true, 300)}),
       Bytes(300, 'x'));
  good("a dictionary's number of 0", joined({magic, {0x22, 0, 0, 3}, raw_block}), abc);
  good("an empty block at the end",
       zstd_frame_of(joined({zstd_block_of(Type::raw, abc, false), zstd_block_of(Type::raw, {}, true)})), abc);
  good("the unused bit", joined({magic, {0x30, 3}, raw_block}), abc);
  bad("a frame's checksum is another", joined({magic, {0x24, 3}, raw_block, {1, 2, 3, 4}}), BatchStatus::bad_checksum);
  bad("a frame's checksum is cut off", joined({magic, {0x24, 3}, raw_block, {1, 2, 3}}));
  bad("a frame is cut off", {});
  bad("a frame is cut off", joined({abc_frame, {0x28, 0xB5, 0x2F}}));
  bad("a skippable frame is cut off", {0x50, 0x2A, 0x4D, 0x18, 1, 0, 0, 0});
  bad("a skippable frame is cut off", {0x50, 0x2A, 0x4D, 0x18, 1, 0, 0});
  bad("no frame begins here", joined({abc_frame, text("abcd")}));
  bad("no frame begins here", joined({{0x27, 0xB5, 0x2F, 0xFD, 0, 0}, raw_block}));  // of version 0.7
  bad("a frame's header is cut off", magic);
  bad("a frame's header is cut off", joined({magic, {0xC0, 0, 1, 2, 3, 4, 5, 6, 7}}));
  bad("a frame's header has the reserved bit", joined({magic, {0x28, 3}, raw_block}));
  bad("a frame's window is too large", joined({magic, {0, 22 << 3}, raw_block}), BatchStatus::unsupported);
  bad("a frame needs a dictionary", joined({magic, {0x21, 9, 3}, raw_block}), BatchStatus::unsupported);
  bad("a frame states more bytes than its room has", joined({magic, {0x20, 3}, raw_block}),
      BatchStatus::output_too_small, 2);
  bad("a frame states more bytes than its room has", joined({magic, {0xE0}, Bytes(8, 0xFF), raw_block}),
      BatchStatus::output_too_small);
  bad("a frame does not have the bytes that it states", joined({magic, {0x20, 4}, raw_block}));

  // Blocks.
  bad("a block is cut off", zstd_frame_of({}));
  bad("a block is cut off", zstd_frame_of({raw_block.begin(), raw_block.end() - 1}));
  bad("a block is cut off", zstd_frame_of(zstd_block_of(Type::rle, {}, true, 4)));
  bad("a block has the reserved type", zstd_frame_of(zstd_block_of(Type::reserved, abc, true)));
  bad("a block is larger than its frame allows", zstd_frame_of(zstd_block_of(Type::rle, {'x'}, true, 1025), 0));
  bad("a block is larger than its frame allows", zstd_frame_of(zstd_block_of(Type::rle, {'x'}, true, (1 << 17) + 1)));
  bad("a block has more bytes than its room", abc_frame, BatchStatus::output_too_small, 2);

  // Literals.
  const Bytes no_sequences = {0};
  for (const uint32_t header : {1u, 2u, 3u}) {
    good("raw literals", zstd_frame_of(zstd_compressed(zstd_raw_literals(abc, header), no_sequences)), abc);
    good("a run of literals", zstd_frame_of(zstd_compressed(zstd_run_literals(9, 'r', header), no_sequences)),
         Bytes(9, 'r'));
  }
  good("no literals", zstd_frame_of(zstd_compressed(zstd_raw_literals({}, 1), no_sequences)), {});
  good("codes, and a second block with the same",
       zstd_frame_of(
           joined({zstd_compressed(zstd_own_literals(half), no_sequences, false), zstd_block_of(Type::raw, abc, false),
                   zstd_compressed(zstd_raw_literals(abc), no_sequences, false),
                   zstd_compressed(zstd_treeless(half), no_sequences)})),
       joined({half, abc, abc, half}));
  // Two symbols of one bit each: weights 1 and, left out, 1. 'x' is 1 in the first place, 'y' 0.
  const Bytes one_bit = {128, 0x10};
  const auto of_type = [&](uint32_t format, uint32_t size, const Bytes& content) {
    return zstd_frame_of(
        zstd_compressed(zstd_coded_literals(ZstdLiteralsType::compressed, format, size, content), no_sequences));
  };
  good("codes of one bit", of_type(0, 7, joined({one_bit, {0xA5}})), {0, 1, 0, 0, 1, 0, 1});
  good("no literals with codes", of_type(0, 0, joined({one_bit, {1}})), {});
  const Bytes four = joined({one_bit, {1, 0, 1, 0, 1, 0}, {7, 6, 5, 1}});
  good("four streams", of_type(1, 6, four), {1, 1, 1, 0, 0, 1});
  bad("four streams have too few literals", of_type(1, 5, four));
  bad("a literals section is cut off", of_type(1, 6, joined({one_bit, {1, 0, 1, 0, 1}})));
  bad("a literals section is cut off", of_type(1, 6, joined({one_bit, {9, 0, 1, 0, 1, 0}, {7, 6, 5, 1}})));
  bad("a literals section is cut off", zstd_frame_of(zstd_compressed({0x02, 0x00}, {})));
  bad("a literals section is cut off", zstd_frame_of(zstd_compressed({0x18, 'a', 'b'}, {})));
  bad("a literals section is cut off", zstd_frame_of(zstd_compressed({}, {})));
  bad("a literals section is cut off", zstd_frame_of(zstd_compressed({0x09}, {})));
  bad("a block has more literals than its frame allows",
      zstd_frame_of(zstd_compressed(zstd_run_literals(2000, 'x'), no_sequences), 0));
  bad("a stream of literals does not end with its bits", of_type(0, 6, joined({one_bit, {0xA5}})));
  bad("a stream of literals does not end with its bits", of_type(0, 8, joined({one_bit, {0xA5}})));
  bad("a bit stream is empty", of_type(0, 7, one_bit));
  bad("a bit stream is empty", of_type(1, 6, joined({one_bit, {1, 0, 1, 0, 1, 0}, {7, 6, 5}})));
  bad("a bit stream has no end mark", of_type(0, 7, joined({one_bit, {0}})));
  bad("a treeless section has no tree before it", zstd_frame_of(zstd_compressed(zstd_treeless(half), no_sequences)));
  bad("a treeless section has no tree before it",
      joined({zstd_frame_of(zstd_compressed(zstd_own_literals(half), no_sequences)),
              zstd_frame_of(zstd_compressed(zstd_treeless(half), no_sequences))}));
  // Trees.
  bad("a tree's description is cut off", of_type(0, 7, {}));
  bad("a tree's description is cut off", of_type(0, 7, {130, 0x11}));
  bad("a tree's description is cut off", of_type(0, 7, {9, 0x11}));
  bad("a tree has no weight", of_type(0, 7, {128, 0x00, 0xA5}));
  bad("a tree's weights make no tree", of_type(0, 7, {129, 0x13, 0xA5}));
  bad("a tree's weights make no tree", of_type(0, 7, {128, 0x20, 0xA5}));
  bad("a code is longer than 11 bits", of_type(0, 7, {128, 0xC0, 0xA5}));
  bad("a code is longer than 11 bits", of_type(0, 7, {129, 0xBB, 0xA5}));
  // Weights by FSE of one symbol, which never end.
  const Bytes all_one = zstd_describe({5, {0, 32}});
  bad("a tree has too many weights",
      of_type(0, 7, joined({{static_cast<uint8_t>(all_one.size() + 2)}, all_one, {0, 4}, {0xA5}})));
  bad("a table has too many states", of_type(0, 7, {3, 2, 1, 1, 0xA5}));
  bad("a bit stream is empty", of_type(0, 7, joined({{static_cast<uint8_t>(all_one.size())}, all_one, {0xA5}})));
  bad("a bit stream has no end mark",
      of_type(0, 7, joined({{static_cast<uint8_t>(all_one.size() + 1)}, all_one, {0, 0xA5}})));

  // Sequences. Literal codes and their lengths are equal below 16, match code m is m + 3, an offset value v has the
  // code log2(v).
  const auto of_sequences = [&](const Bytes& section) {
    return zstd_frame_of(zstd_compressed(zstd_raw_literals(abc), section));
  };
  const CodedSequence three_of_three = {3, 0, 2, 2, 0, 0};  // abc, offset 6 - 3, three bytes
  good("predefined tables", of_sequences(zstd_sequences_of({three_of_three})), text("abcabc"));
  good("single symbols", of_sequences(zstd_sequences_of({three_of_three}, {zstd_only(3), zstd_only(2), zstd_only(0)})),
       text("abcabc"));
  good("repeat offsets", of_sequences(zstd_sequences_of({{3, 0, 2, 2, 0, 0}, {0, 0, 1, 0, 0, 0}, {0, 0, 1, 1, 1, 0}})),
       // Without literals 2 is the last but two, 4, which then stands before 3; and 3 is 4 - 1.
       [&] {
         Bytes raw = text("abcabc");
         for (const auto& [offset, length] : {std::pair(4, 3), std::pair(3, 4)})
           for (int i = 0; i < length; ++i) raw.push_back(raw[raw.size() - static_cast<size_t>(offset)]);
         return raw;
       }());
  good("a run by an offset of 1", of_sequences(zstd_sequences_of({{3, 0, 2, 0, 40, 5}})),
       text("abc" + std::string(72, 'c')));
  std::vector<CodedSequence> many(200, {0, 0, 2, 2, 0, 0});
  many[0].literal_code = 3;
  const TableOfKind literals_own = {Mode::own, {5, {20, -1, 0, 11}}}, offsets_own = {Mode::own, {5, {1, 1, 30}}},
                    matches_own = {Mode::own, {6, {60, 0, 0, 0, 0, 2, 2}}};
  Bytes times_abc;
  for (int i = 0; i < 201; ++i) times_abc = joined({times_abc, abc});
  good("tables of its own", of_sequences(zstd_sequences_of(many, {literals_own, offsets_own, matches_own})), times_abc);
  const auto repeated = [](TableOfKind table) {
    table.mode = Mode::repeat;
    return table;
  };
  const std::array<TableOfKind, 3> repeats = {repeated(literals_own), repeated(offsets_own), repeated(matches_own)};
  const Bytes own_then =
      zstd_compressed(zstd_raw_literals(abc), zstd_sequences_of(many, {literals_own, offsets_own, matches_own}), false);
  good("repeated tables",
       zstd_frame_of(joined({own_then, zstd_compressed(zstd_raw_literals(abc), no_sequences, false),
                             zstd_compressed(zstd_raw_literals(abc), zstd_sequences_of(many, repeats))})),
       joined({times_abc, abc, times_abc}));
  good("repeated single symbols",
       zstd_frame_of(joined(
           {zstd_compressed(zstd_raw_literals(abc),
                            zstd_sequences_of({three_of_three}, {zstd_only(3), zstd_only(2), zstd_only(0)}), false),
            zstd_compressed(zstd_raw_literals(abc),
                            zstd_sequences_of({three_of_three},
                                              {repeated(zstd_only(3)), repeated(zstd_only(2)), TableOfKind{}}))})),
       text("abcabcabcabc"));
  bad("a table is repeated that no block had", of_sequences(zstd_sequences_of(many, repeats)));
  bad("a table is repeated that no block had",
      joined({zstd_frame_of(joined({own_then, raw_block})), of_sequences(zstd_sequences_of(many, repeats))}));
  good("a count of three bytes",
       zstd_frame_of(joined({zstd_block_of(Type::raw, abc, false),
                             zstd_compressed(zstd_raw_literals(abc),
                                             zstd_sequences_of(std::vector<CodedSequence>(40'000, {0, 0, 2, 0, 0, 0}),
                                                               {zstd_only(0), zstd_only(2), zstd_only(0)}))})),
       joined({abc, Bytes(120'000, 'c'), abc}));
  bad("a block has no sequences section", of_sequences({}));
  bad("a sequences section is cut off", of_sequences({128}));
  bad("a sequences section is cut off", of_sequences({255, 1}));
  bad("a sequences section is cut off", of_sequences({1}));
  bad("a sequences section is cut off", of_sequences({1, 0x40}));
  bad("a sequences section has reserved bits", of_sequences({1, 1, 1, 1, 1, 1}));
  bad("bytes follow a section without sequences", of_sequences({0, 0}));
  bad("bytes follow a section without sequences", of_sequences({128, 0, 0}));
  bad("a table's only symbol is none", of_sequences({1, 0x40, 36, 1}));
  bad("a table's only symbol is none", of_sequences({1, 0x10, 32, 1}));
  bad("a table's only symbol is none", of_sequences({1, 0x04, 53, 1}));
  bad("a table has too many states", of_sequences({1, 0x20, 4, 1}));
  bad("a table has too many symbols", of_sequences({1, 0x80, 0x10, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1}));
  bad("a table's description is cut off", of_sequences({1, 0x80, 0x00, 0x00}));
  bad("a bit stream is empty", of_sequences({1, 0}));
  bad("a bit stream has no end mark", of_sequences({1, 0, 0}));
  Bytes long_bits = zstd_sequences_of({three_of_three});
  long_bits.insert(long_bits.end() - 1, 0);
  bad("a sequences section does not end with its bits", of_sequences(long_bits));
  bad("a sequences section does not end with its bits", of_sequences({2, 0, 0x01}));
  bad("sequences take more literals than there are", of_sequences(zstd_sequences_of({{4, 0, 0, 0, 0, 0}})));
  bad("a block decodes to more than its frame allows",
      zstd_frame_of(zstd_compressed(zstd_raw_literals(abc), zstd_sequences_of({{3, 0, 2, 0, 46, 0}})), 0));
  bad("a block has more bytes than its room", of_sequences(zstd_sequences_of({three_of_three})),
      BatchStatus::output_too_small, 5);
  bad("an offset is 0", of_sequences(zstd_sequences_of({{1, 0, 0, 0, 0, 0}, {0, 0, 1, 1, 0, 0}})));
  bad("an offset lies before the frame", of_sequences(zstd_sequences_of({{3, 0, 2, 3, 0, 0}})));
  bad("an offset lies before the frame", joined({abc_frame, of_sequences(zstd_sequences_of({{3, 0, 2, 3, 0, 0}}))}));
  bad("an offset lies before the frame",
      of_sequences(zstd_sequences_of({{3, 0, 31, 0x7FFFFFFF, 0, 0}}, {TableOfKind{}, zstd_only(31), TableOfKind{}})));
  bad("an offset lies before the window",
      zstd_frame_of(joined({zstd_block_of(Type::rle, {'x'}, false, 1024), zstd_block_of(Type::rle, {'x'}, false, 100),
                            zstd_compressed(zstd_raw_literals(abc), zstd_sequences_of({{3, 0, 10, 4, 0, 0}}))}),
                    0));
  good("an offset of the window",
       zstd_frame_of(joined({zstd_block_of(Type::rle, {'x'}, false, 1024), zstd_block_of(Type::rle, {'x'}, false, 100),
                             zstd_compressed(zstd_raw_literals(abc), zstd_sequences_of({{3, 0, 10, 3, 0, 0}}))}),
                     0),
       joined({Bytes(1124, 'x'), abc, text("xxx")}));
  return cases;
}

}  // namespace ptxkit::testing
