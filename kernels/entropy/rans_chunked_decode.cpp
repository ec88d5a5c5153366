// Decoding of rANS, format `chunked`, a thread for each lane of a stream. A warp decodes a batch at once: as many
// chunks as its lanes suffice for, so eight chunks of four lanes still fill it. The warps of a CTA share the table and
// take batches in turn.
#include <array>

#include "kernels/abi.hpp"
#include "kernels/entropy/frequencies.hpp"
#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/entropy/rans_format.hpp"
#include "kernels/kernels.hpp"
#include "kernels/transform.hpp"
#include "kernels/transform_abi.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

constexpr u32 kSlots = 1u << kMaxScaleBits;
constexpr u32 kWarps = kRansDecodeWarps;

// The words of a batch's lanes in shared memory, a column of kWords for each lane. Each fill stores 16 bytes of the
// stream that were loaded one iteration earlier. Stream words are u16 at any alignment: word i of a column has the
// bytes from 4i + shift on, relative to the lane's first vector.
class WordRing {
 public:
  static constexpr u32 kWords = 16;
  // An iteration takes at most kTurnRows words, and a vector has as many. If each iteration loads a vector where there
  // is room for it, the words of an iteration are always in the ring.
  static constexpr u32 kTurnRows = 8;
  using Columns = Ptr<shared, u32, 16, Rate::warp>;

  WordRing(TransformItem& item, const Columns& columns, const LaneBool& used, const LaneU32& words_at)
      : item_(item),
        k_(item.k),
        column_(columns.at(k_.warp() * (kWords * kWarpLanes) + k_.lane())),
        used_(used),
        words_at_(words_at),
        excess_(trunc<u32>(item.src.at(words_at).address()) & 15),
        begin_(words_at - excess_),
        shift_(excess_ % 4 * 8),
        whole_vectors_(select(used, (item.src_size - begin_) / 16, 0)),
        next_(k_, excess_ / 4 * 2),
        first_(*next_),
        vectors_(k_, 0),
        last_(k_, 0),
        asked_(k_, 0),
        words_{LaneVar(k_, 0), LaneVar(k_, 0), LaneVar(k_, 0), LaneVar(k_, 0)} {
    unrolled<3>([&](auto) {
      ask();
      keep();
    });
  }

  LaneU32 next_in_ring() const {
    return zext<u32>(column_.template as<u16>().at(*next_ / 2 % kWords * (2 * kWarpLanes) + *next_ % 2).load());
  }
  // The next word from the stream itself. After the lane's `limit` words it is any word of the stream.
  LaneU32 next_in_stream(const LaneU32& limit) const {
    return load_u16(item_.src.at(select(taken() < limit, words_at_ + taken() * 2, 0)));
  }
  void skip(const LaneU32& words) { next_ += words; }
  LaneU32 taken() const { return *next_ - first_; }

  void ask() {
    const LaneBool asks = used_ & (*vectors_ * 4 <= *next_ / 2 + (kWords - 3));
    asked_ = zext<u32>(asks);
    const LaneBool whole = *vectors_ < whole_vectors_;
    k_.if_(asks & !whole, [&] {  // the end of the stream, and zeros after it
      const LaneU32 from = begin_ + *vectors_ * 16;
      for (LaneVar& word : words_) word = 0;
      k_.range(from, max(from, item_.src_size), 1, [&](const LaneU32& at) {
        const LaneU32 byte = zext<u32>(item_.src.at(at).load()) << (at - from) % 4 * 8;
        for (u32 i = 0; i < 4; ++i) words_[i] |= select((at - from) / 4 == k_.constant(i), byte, 0);
      });
    });
    k_.if_(asks & whole, [&] {
      const auto loaded = item_.src.at(begin_)
                              .assume_aligned<16>("begin_ is where a vector begins")
                              .template as<u32>()
                              .at(times<4>(*vectors_))
                              .template load_vector<4>();
      for (u32 i = 0; i < 4; ++i) words_[i] = loaded[i];
    });
  }
  void keep() {
    k_.if_(*asked_ != 0, [&] {
      LaneVar before(k_, *last_);
      unrolled<4>([&](auto i) {
        column_.at((*vectors_ * 4 + (kWords - 1 + i)) % kWords * kWarpLanes)
            .store(funnel_right(*before, *words_[i], shift_));
        before = *words_[i];
      });
      last_ = *words_[3];
      vectors_ += 1;
    });
  }

 private:
  TransformItem& item_;
  Kernel& k_;
  Ptr<shared, u32, 4, Rate::thread> column_;
  LaneBool used_;
  LaneU32 words_at_, excess_;
  LaneU32 begin_;  // offset of the lane's first vector
  LaneU32 shift_, whole_vectors_;
  LaneVar next_;  // index of the next u16 in the ring
  LaneU32 first_;
  LaneVar vectors_;  // vectors that have been put into the ring
  LaneVar last_;     // the last word of the last of them
  LaneVar asked_;    // whether a vector has been loaded but not kept
  std::array<LaneVar, 4> words_;
};

class Decoder {
 public:
  Decoder(TransformItem& item, const SymbolWords& table, const Ptr<shared, u8, 16, Rate::warp>& slots,
          const Ptr<shared, u32, 16>& notes, const WordRing::Columns& ring)
      : item_(item),
        k_(item.k),
        table_(table),
        slots_(slots),
        notes_(notes),
        ring_(ring),
        scale_bits_(item.k, 0),
        chunk_count_(item.k, 0),
        first_chunk_at_(item.k, 0) {}

  // Reads the stream's header in every warp. Then warp 0 checks the chunks' headers, and the others fill the slots.
  template <class Fail>
  void open(const Fail& fail_if) {
    fail_if(is_too_large(item_), StreamStatus::item_too_large);
    fail_if(item_.src_size < kRansLengthsAt, StreamStatus::input_overrun);
    const WarpU32 scale_bits = zext<u32>(item_.src.load());
    fail_if(scale_bits - kMinScaleBits > kMaxScaleBits - kMinScaleBits, StreamStatus::bad_table);
    ask_for_stream();
    const WarpU32 chunk_count = load_u16(item_.src.at<kRansChunkCountAt>());
    LaneSymbols frequencies(k_);
    const WarpU32 sum = read_table(frequencies);
    fail_if(sum != select(chunk_count == 0, 0, k_.constant<u32>(1) << scale_bits), StreamStatus::bad_table);
    fail_if(chunk_count * 2 + kRansLengthsAt > item_.src_size, StreamStatus::input_overrun);
    scale_bits_ = scale_bits;
    first_chunk_at_ = chunk_count * 2 + kRansLengthsAt;
    chunk_count_ = chunk_count;
    k_.if_(k_.warp() == 0, [&] {
        check_structure();
        k_.once_per_warp([&] {
          notes_.at<kWarps>().store(*item_.status);
          notes_.at<kWarps + 1>().store(*item_.size_bytes);
        });
      }).else_([&] { fill_slots(frequencies); });
  }

  // Decodes the batches of this warp. To be called after a barrier.
  void decode() {
    k_.if_(!item_.has_failed(), [&] {
      item_.status = broadcast(notes_.at<kWarps>().load());
      item_.size_bytes = broadcast(notes_.at<kWarps + 1>().load());
    });
    LaneVar bad(k_, 0);
    k_.if_(!item_.has_failed(), [&] { decode_chunks(bad); });
    const WarpBool failed = any(*bad != 0);
    k_.once_per_warp([&] { notes_.at(k_.warp()).store(zext<u32>(failed)); });
  }

  // Combines the warps' results. To be called after another barrier.
  void close() {
    const WarpBool failed = any(notes_.at(k_.lane() % kWarps).load() != 0);
    k_.if_((!item_.has_failed()) & failed,
           [&] { item_.status = k_.constant(static_cast<u32>(StreamStatus::corrupt)); });
  }

 private:
  // Prefetches the stream into L2. The chunks' headers are found one after the other, and each would wait for memory.
  void ask_for_stream() {
    constexpr u32 kLineBytes = 128, kStepBytes = kWarps * kWarpLanes * kLineBytes;
    k_.range((k_.warp() * kWarpLanes + k_.lane()) * kLineBytes, item_.src_size, kStepBytes,
             [&](const LaneU32& at) { item_.src.at(at).prefetch_l2(); });
  }

  // Reads the frequencies and returns their sum.
  WarpU32 read_table(LaneSymbols& frequencies) {
    for_lane_symbols(k_,
                     [&](auto j, const LaneU32& s) { frequencies[j] = load_u16(item_.src.at(kRansTableAt + s * 2)); });
    return reduce_add(frequencies.sum());
  }

  WarpU32 length_of(const WarpU32& chunk) { return load_u16(item_.src.at(kRansLengthsAt + chunk * 2)); }

  // Checks the chunks' headers: every property on which decoding relies.
  void check_structure() {
    WarpVar at(k_, *first_chunk_at_), raw_bytes(k_, 0);
    k_.range(k_.constant<u32>(0), *chunk_count_, 1, [&](const WarpU32& c, auto& chunks) {
      const FailIf fail_if{item_, chunks};
      const WarpU32 length = length_of(c);
      fail_if(*at >= item_.src_size, StreamStatus::input_overrun);
      const WarpU32 lanes = zext<u32>(item_.src.at(*at).load());
      fail_if(lanes - 1 >= kMaxRansLanes, StreamStatus::bad_lanes);
      const WarpU32 header_bytes = lanes * 8 + 1;
      fail_if(item_.src_size - *at < header_bytes, StreamStatus::input_overrun);
      const LaneU32 lane = k_.lane();
      const LaneBool used = lane < lanes;
      const LaneU32 word_count = select(used, load_u32(item_.src.at(*at + 1 + (lanes + select(used, lane, 0)) * 4)), 0);
      const LaneU32 symbols = select(lane < length, (length - lane - 1) / lanes + 1, 0);
      fail_if(any(word_count > symbols), StreamStatus::bad_lanes);
      const WarpU32 words = reduce_add(word_count);
      at += header_bytes;
      fail_if((item_.src_size - *at) / 2 < words, StreamStatus::input_overrun);
      at += words * 2;
      raw_bytes += length;
      fail_if(*raw_bytes > item_.capacity, StreamStatus::output_overrun);
    });
    k_.if_((!item_.has_failed()) & (*at != item_.src_size),
           [&] { item_.status = k_.constant(static_cast<u32>(StreamStatus::corrupt)); });
    item_.size_bytes = *raw_bytes;
  }

  // Called by all warps but the first. Stores the symbol of every slot, and for each symbol a word with its frequency
  // and, in the high half, the start of its slots. All lanes together fill the slots of one lane's symbol after the
  // other, so that no lane waits for a long run.
  void fill_slots(LaneSymbols& frequencies) {
    LaneVar start(k_, exclusive_sum(frequencies.sum()));
    for_lane_symbols(k_, [&](auto j, const LaneU32& s) {
      k_.if_(k_.warp() == j % (kWarps - 1) + 1, [&] {
        table_.at(s).store(*frequencies[j] | *start << 16);
        k_.range(k_.constant<u32>(0), u32{kWarpLanes}, 1, [&](const auto& lane) {
          const WarpU32 symbol = shuffle(s, lane), first = shuffle(*start, lane);
          for_each_lane(k_, shuffle(*frequencies[j], lane),
                        [&](const LaneU32& i) { slots_.at(first + i).store(trunc<u8>(symbol)); });
        });
      });
      start += *frequencies[j];
    });
  }

  // Decodes the chunks. `bad` is not 0 in lanes that found an error.
  void decode_chunks(LaneVar& bad) {
    WarpVar chunk(k_, 0), at(k_, *first_chunk_at_), out(k_, 0), batch(k_, 0);
    k_.warp_loop([&](auto& batches) {
      batches.break_if(*chunk == *chunk_count_);
      const WarpBool mine = *batch % kWarps == k_.warp();
      batch += 1;
      Lane lane(k_);
      WarpVar used(k_, 0);
      k_.warp_loop([&](auto& chunks) {
        chunks.break_if(*chunk == *chunk_count_);
        const WarpU32 lanes = zext<u32>(item_.src.at(*at).load());
        chunks.break_if(*used + lanes > kWarpLanes);
        const WarpU32 length = length_of(*chunk);
        k_.if_(mine, [&] { begin(lane, lanes, length, *used, *at, *out); });
        const LaneU32 own = min(k_.lane(), lanes - 1);
        const LaneU32 words = load_u32(item_.src.at(*at + 1 + (lanes + own) * 4));
        at += lanes * 8 + 1 + reduce_add(select(k_.lane() < lanes, words, 0)) * 2;
        used += lanes;
        out += length;
        chunk += 1;
      });
      k_.if_(mine, [&] {
        mark_warp(k_, Mark::parse, *at);
        run(lane, bad);
      });
    });
  }

  // The state of a lane of a chunk.
  struct Lane {
    explicit Lane(Kernel& k)
        : state(k, kRansLow), words_at(k, 0), word_count(k, 0), first(k, 0), to(k, 0), end(k, 0), step(k, 1) {}
    LaneVar state, words_at, word_count;
    LaneVar first;          // first lane of the chunk
    LaneVar to, end, step;  // positions in the output
  };

  // Assigns the lanes from `used` on to the chunk at `at`.
  void begin(Lane& lane, const WarpU32& lanes, const WarpU32& length, const WarpU32& used, const WarpU32& at,
             const WarpU32& out) {
    const LaneU32 index = k_.lane() - used;  // wraps for lanes that already have a chunk
    const LaneBool mine = index < lanes;
    const LaneU32 own = select(mine, index, 0);
    const LaneU32 word_count = select(mine, load_u32(item_.src.at(at + 1 + (lanes + own) * 4)), 0);
    const LaneU32 words_before = exclusive_sum(word_count);
    const WarpU32 words_at = at + 1 + lanes * 8;
    lane.state = select(mine, load_u32(item_.src.at(at + 1 + own * 4)), *lane.state);
    lane.words_at = select(mine, words_at + words_before * 2, *lane.words_at);
    lane.word_count = select(mine, word_count, *lane.word_count);
    lane.first = select(mine, used, *lane.first);
    lane.to = select(mine, out + index, *lane.to);
    lane.end = select(mine, out + length, *lane.end);
    lane.step = select(mine, lanes, *lane.step);
  }

  // A transposition of 4 x 4 bytes: byte i of the j-th of four lanes becomes byte j of the i-th lane.
  LaneU32 transposed(const LaneU32& word) {
    const LaneBool second = (k_.lane() & 2) != 0, odd = (k_.lane() & 1) != 0;
    const LaneU32 halves = prmt(word, shuffle_xor(word, 2), select(second, k_.constant<u32>(0x3276), 0x5410));
    return prmt(halves, shuffle_xor(halves, 1), select(odd, k_.constant<u32>(0x3715), 0x6240));
  }

  // Decodes a batch. An iteration has eight rows, whose words come from the ring if all lanes of the warp have as many
  // left, otherwise from the stream. If every four lanes belong to one chunk and are aligned, each stores the symbols
  // of four rows as one word.
  void run(Lane& lane, LaneVar& bad) {
    bad |= zext<u32>(*lane.state < kRansLow);
    const WarpU32 slot_mask = (k_.constant<u32>(1) << *scale_bits_) - 1;
    WordRing ring(item_, ring_, *lane.to < *lane.end, *lane.words_at);
    const auto step = [&] {
      const LaneU32 slot = *lane.state & slot_mask;
      const auto symbol = slots_.at(slot).load();
      const LaneU32 word = table_.at(zext<u32>(symbol)).load();
      lane.state = (word & 0xFFFF) * (*lane.state >> *scale_bits_) + slot - (word >> 16);
      return symbol;
    };
    const auto step_in_ring = [&] {
      const LaneU32 next = ring.next_in_ring();
      const auto symbol = step();
      const LaneBool needs = *lane.state < kRansLow;
      lane.state = select(needs, *lane.state << 16 | next, *lane.state);
      ring.skip(zext<u32>(needs));
      return symbol;
    };
    const auto store = [&](const auto& symbol) {
      item_.dst.at(*lane.to).store(symbol);
      lane.to += *lane.step;
    };
    const LaneU32 column = k_.lane() % 4;
    // position of the first of four lanes' symbols, if the four belong to one chunk
    const LaneU32 place = *lane.to - column;
    const WarpBool in_words = all((*lane.first % 4 == 0) & (trunc<u32>(item_.dst.at(place).address()) % 4 == 0));
    k_.warp_loop([&](auto& turns) {
      const LaneBool active = *lane.to < *lane.end;
      turns.break_if(!any(active));
      ring.ask();
      constexpr u32 kRows = WordRing::kTurnRows;
      k_.if_(all(active & (*lane.end - *lane.to > *lane.step * (kRows - 1))), [&] {
          k_.if_(in_words, [&] {
              for (u32 half = 0; half < kRows / 4; ++half) {
                LaneVar own(k_, zext<u32>(step_in_ring()));
                unrolled<3>([&](auto i) { own |= zext<u32>(step_in_ring()) << (8 * (i + 1)); });
                const LaneU32 to = *lane.to + column * (*lane.step - 1);
                item_.dst.at(to - (trunc<u32>(item_.dst.at(to).address()) & 3))
                    .assume_aligned<4>("what is taken away is 0, by in_words")
                    .template as<u32>()
                    .store(transposed(*own));
                lane.to += *lane.step * 4;
              }
            }).else_([&] { unrolled<kRows>([&](auto) { store(step_in_ring()); }); });
        }).else_([&] {
        LaneVar rows(k_, 0);
        k_.thread_loop([&](auto& symbols) {
          symbols.break_if((*rows == kRows) | (*lane.to >= *lane.end));
          rows += 1;
          store(step());
          k_.if_(*lane.state < kRansLow, [&] {
            lane.state = *lane.state << 16 | ring.next_in_stream(*lane.word_count);
            ring.skip(k_.constant<u32>(1));
          });
        });
      });
      ring.keep();
    });
    bad |= zext<u32>((*lane.state != kRansLow) | (ring.taken() != *lane.word_count));
  }

  TransformItem& item_;
  Kernel& k_;
  SymbolWords table_;
  Ptr<shared, u8, 16, Rate::warp> slots_;
  Ptr<shared, u32, 16> notes_;  // a word for each warp, whether it failed; then status and size from warp 0
  WordRing::Columns ring_;
  WarpVar scale_bits_, chunk_count_, first_chunk_at_;
};

constexpr u32 kRingWords = WordRing::kWords * kWarpLanes * kWarps;

}  // namespace

KernelDefinition rans_chunked_decode() {
  return define_cta_transform<kWarps>(
      kRansChunkedDecode,
      {.registers = 72, .shared_bytes = kSlots + (kSymbols + kRingWords + kWarps + 2) * sizeof(u32)}, M,
      "four warps a stream, each every fourth batch of chunks", [](TransformItem& item) {
        Kernel& k = item.k;
        const auto table = k.shared<u32, kSymbols, 16>("table");
        const auto slots = k.shared<u8, kSlots, 16>("slots");
        const auto ring = k.shared<u32, kRingWords, 16>("ring");
        const auto notes = k.shared<u32, kWarps + 2, 16>("notes");
        Decoder decoder(item, table.data(), slots.data(), notes.data(), ring.data());
        decode_stream(item, decoder);
      });
}

}  // namespace ptxkit::kernels
