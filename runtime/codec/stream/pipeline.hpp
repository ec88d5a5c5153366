// Three stages over a sequence of batches: one thread reads, one works, the caller writes; order is kept and memory is
// bounded.
//
// A batch owns buffers of a known size, and a permit for them in a ledger. The reader fills a batch, the worker
// transforms it, the writer empties it and hands buffers and permit back to the reader, so a steady stream allocates
// nothing. The permit is held through every hand-over: a batch that waits in a queue is reserved for. At most `depth`
// batches exist; fewer when the ledger, which other streams may share, has no room for another. The first is waited
// for, the others are taken only when they are free, so two streams can never hold what the other one waits for.
//
// Where the system has no thread for reader and worker, the caller does all three, batch after batch.
//
// Errors travel with the batches, so the one reported is always the first in the order of the data, whichever stage and
// whatever timing found it: a truncated block 9 never hides a corrupt block 7.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <utility>

#include "runtime/codec/threads/bounded_queue.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "support/guarded.hpp"
#include "support/result.hpp"
#include "support/thread.hpp"

namespace ptxkit::codec {

struct PipelineLimits {
  scheduler::Ledger& memory;
  uint64_t batch_bytes = 0;  // what the buffers of one batch take
  unsigned depth = 3;        // batches at a time, at least 1
  std::stop_token stop;      // ends the stream between two batches with the error "cancelled"
  uint64_t fixed_bytes = 0;  // what the stream takes besides, for as long as it lasts
};

// The three stages of run_pipeline on the calling thread, with one batch, whose permit the caller holds.
template <class Batch, class Read, class Work, class Write>
Result<void> run_in_turn(const PipelineLimits& limits, Read& read, Work& work, Write& write) {
  Batch batch;
  for (;;) {
    if (limits.stop.stop_requested()) return fail("cancelled");
    Result<bool> more = guarded([&] { return read(batch); });
    if (more && !*more) return {};
    if (auto done = guarded([&] { return work(batch)->finish(); }); !done) return done;
    if (auto written = guarded([&] { return write(batch); }); !written) return written;
    if (!more) return tl::unexpected(std::move(more.error()));
  }
}

// read(batch) -> Result<bool>: false means that the input had ended and the batch is empty; an error is reported after
// everything read before it, with the batch itself still transformed and written first, so a stage may return blocks
// and the error that follows them. work(batch) -> unique_ptr to what has finish() -> Result<void>: the batch is begun,
// and when the next one is begun too, or none is there yet, it is finished; so a device never runs dry. write(batch) ->
// Result<void>. What one of them throws is an error like those that it returns. When it returns, every permit is back.
template <class Batch, class Read, class Work, class Write>
Result<void> run_pipeline(const PipelineLimits& limits, Read read, Work work, Write write) {
  struct ReservedBatch {
    scheduler::Reservation permit;  // first: it is given back when the batch's buffers are gone
    Batch batch;
  };
  struct Load {
    ReservedBatch reserved;
    std::optional<Error> error;  // of the reader: comes after the batch; of the worker: instead of it
    bool holds_data = true;      // false: the batch is not written
  };
  scheduler::BoundedQueue<ReservedBatch> free_batches(limits.depth);
  scheduler::BoundedQueue<Load> to_work(limits.depth), to_write(limits.depth);
  // In one piece: who waits here holds nothing. It lasts as long as the stream.
  const auto first_permit = limits.memory.reserve(limits.fixed_bytes + limits.batch_bytes);
  if (!first_permit) return tl::unexpected(first_permit.error());
  free_batches.push(ReservedBatch{});

  const auto read_all = [&] {
    for (unsigned made = 1;;) {
      std::optional<ReservedBatch> reserved = free_batches.try_pop();
      if (!reserved && made < limits.depth) {
        if (auto permit = limits.memory.try_reserve(limits.batch_bytes)) {
          reserved = ReservedBatch{std::move(*permit), Batch{}};
          ++made;
        }
      }
      if (!reserved) reserved = free_batches.pop();
      if (!reserved) break;
      Load load{std::move(*reserved), {}, true};
      // What the batch held before is no data of this stream any more.
      load.holds_data = !limits.stop.stop_requested();
      Result<bool> more =
          load.holds_data ? guarded([&] { return read(load.reserved.batch); }) : Result<bool>(fail("cancelled"));
      if (more && !*more) break;
      if (!more) load.error = std::move(more.error());
      const bool last = load.error.has_value();
      if (!to_work.push(std::move(load)) || last) break;
    }
    to_work.close();
  };
  const auto work_all = [&] {
    struct UnderWay {
      Load load;
      decltype(work(std::declval<Batch&>())) begun;
    };
    const auto begin = [&](Batch& batch) {
      return guarded([&]() -> Result<decltype(work(batch))> { return work(batch); });
    };
    std::optional<UnderWay> before;
    const auto finish = [&](UnderWay under_way) {
      Load& load = under_way.load;
      if (Result<void> done = guarded([&] { return under_way.begun->finish(); }); !done) {
        load.error = std::move(done.error());
        load.holds_data = false;
      }
      under_way.begun.reset();
      const bool last = !load.holds_data;
      return to_write.push(std::move(load)) && !last;
    };
    bool goes_on = true;
    while (goes_on) {
      // The reader may be waiting for the batch that is under way.
      std::optional<Load> load = before ? to_work.try_pop() : to_work.pop();
      if (!load && !before) break;
      std::optional<UnderWay> next;
      if (load && load->holds_data) {
        if (limits.stop.stop_requested()) load->error = Error{"cancelled", {}, {}};
        auto begun = begin(load->reserved.batch);
        if (begun) {
          next.emplace(std::move(*load), std::move(*begun));
        } else {
          load->error = std::move(begun.error());
          load->holds_data = false;
        }
      }
      if (before) goes_on = finish(std::move(*before));
      before = std::move(next);
      if (load && !load->holds_data) {
        if (goes_on) to_write.push(std::move(*load));
        goes_on = false;
      }
    }
    // What is still under way dies here, and is waited for.
    before.reset();
    to_write.close();
  };

  // What even the queues may throw.
  std::optional<Error> of_reader, of_worker;
  const auto reader_stage = [&] {
    try {
      read_all();
    } catch (...) {
      of_reader = error_of_exception();
      to_work.close();
    }
  };
  const auto worker_stage = [&] {
    try {
      work_all();
    } catch (...) {
      of_worker = error_of_exception();
      to_work.abandon();
      to_write.close();
    }
  };
  // The worker first: as long as there is no reader, nothing of the input is taken.
  auto worker = try_thread(std::ref(worker_stage));
  auto reader = worker ? try_thread(std::ref(reader_stage)) : std::nullopt;
  if (!reader) {
    to_work.close();
    if (worker) worker->join();
    return run_in_turn<Batch>(limits, read, work, write);
  }

  Result<void> outcome = guarded([&]() -> Result<void> {
    while (auto load = to_write.pop()) {
      if (load->holds_data) {
        if (auto written = write(load->reserved.batch); !written) return written;
      }
      if (load->error) return tl::unexpected(std::move(*load->error));
      free_batches.push(std::move(load->reserved));
    }
    return {};
  });
  // Both threads end at their next push or pop.
  free_batches.abandon();
  to_work.abandon();
  to_write.abandon();
  reader->join();
  worker->join();
  for (const auto& error : {of_reader, of_worker}) {
    if (outcome && error) outcome = tl::unexpected(*error);
  }
  return outcome;
}

}  // namespace ptxkit::codec
