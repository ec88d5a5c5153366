// The shared memory of deflate_encode, whose arrays take turns.
#pragma once

#include "kernels/deflate/checksums.hpp"
#include "kernels/deflate/deflate_bits.hpp"
#include "kernels/deflate/deflate_encode_format.hpp"
#include "kernels/entropy/huffman_lengths.hpp"
#include "kernels/lz4/lz4_block_writer.hpp"

namespace ptxkit::kernels {

// Symbols of the codes, to a multiple of 32.
inline constexpr uint32_t kDeflateLiteralSymbols = 288, kDeflateDistanceSymbols = 32, kDeflateLengthCodeSymbols = 32;
inline constexpr uint32_t kDeflateCountWords = kDeflateLiteralSymbols + kDeflateDistanceSymbols;

class DeflateArrays {
 public:
  explicit DeflateArrays(dsl::Kernel& k) : words_(k.shared<dsl::u32, kWords, 16>("words").data()) {}

  static constexpr uint32_t kBytes() { return kWords * sizeof(uint32_t); }

  // Of literals and lengths, then of distances.
  SymbolWords counts() const { return words_; }

  // While the tokens are made.
  SymbolWords crc_table() const { return part<kLeaves>(); }
  MatchList runs() const { return part<kLeaves>(); }

  // While the lengths of codes are made.
  CodeLengthWorkspace literal_workspace() const {
    return {counts(), part<kLeaves>(), part<kPairs>(), part<kLeafParents>(), part<kPairParents>(), length_counts()};
  }
  CodeLengthWorkspace distance_workspace() const {
    return {words_.at<kDeflateLiteralSymbols>(),
            part<kLeaves>(),
            part<kPairs>(),
            part<kLeafParents>(),
            part<kPairParents>(),
            length_counts()};
  }
  CodeLengthWorkspace length_code_workspace() const {
    constexpr uint32_t kEach = kDeflateLengthCodeSymbols;
    return {length_code_counts(),        part<kLeaves>(), part<kLeaves + kEach>(), part<kLeaves + 2 * kEach>(),
            part<kLeaves + 3 * kEach>(), length_counts()};
  }
  SymbolWords length_code_counts() const { return part<kLeaves + 4 * kDeflateLengthCodeSymbols>(); }

  // The lengths of the codes of literals, then of distances.
  auto lengths() const { return part<kLengths>().as<dsl::u8>(); }
  // How a dynamic block has them: a symbol, and what stands behind its code from bit 8 on.
  auto length_fields() const { return part<kFields>().as<dsl::u16>(); }
  SymbolWords length_codes() const { return part<kLengthCodes>(); }  // with the length from bit 16 on

  // While the bits are written. An entry of a token: code and extra bits, and the number of them from bit 20 on.
  SymbolWords token_codes() const { return part<kLeaves>(); }
  SymbolWords distance_codes() const { return part<kLeaves + kDeflateTokenCodes>(); }  // of each symbol, the same
  SymbolWords length_symbol_codes() const { return part<kFields + kFieldWords>(); }    // the end of the block, lengths
  DeflateBits::Ring ring() const { return part<kLeafParents>(); }

 private:
  static constexpr uint32_t kLeaves = kDeflateCountWords;
  static constexpr uint32_t kPairs = kLeaves + kDeflateLiteralSymbols;
  static constexpr uint32_t kLeafParents = kPairs + kDeflateLiteralSymbols;
  static constexpr uint32_t kPairParents = kLeafParents + kDeflateLiteralSymbols;
  static constexpr uint32_t kLengthCounts = kPairParents + kDeflateLiteralSymbols;
  static constexpr uint32_t kLengths = kLengthCounts + 16;
  static constexpr uint32_t kWords = kLengths + kDeflateCountWords / 4;
  static constexpr uint32_t kLengthCodes = kLeaves + kDeflateTokenCodes + kDeflateDistanceSymbols;
  static constexpr uint32_t kFields = kPairParents + 32, kFieldWords = kDeflateCountWords / 2;
  static_assert(kLeaves + kCrc32TableEntries <= kLengthCounts);
  static_assert(kLengthCodes + kDeflateLengthCodeSymbols == kLeafParents);
  static_assert(kLeafParents + DeflateBits::kRingWords <= kFields);
  static_assert(kFields + kFieldWords + 32 <= kLengthCounts);

  SymbolWords length_counts() const { return part<kLengthCounts>(); }
  template <uint32_t At>
  SymbolWords part() const {
    return words_.at<At>();
  }

  SymbolWords words_;
};

}  // namespace ptxkit::kernels
