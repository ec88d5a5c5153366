// A pipeline of three stages over a sequence of batches: one thread reads, one works, the caller writes. Order is kept
// and memory is bounded.
//
// A batch owns buffers of a known size and a reservation for them in a ledger. The reader fills a batch, the worker
// transforms it, and the writer empties it and returns buffers and reservation to the reader, so a steady stream
// allocates nothing. A batch keeps its reservation while it waits in a queue. At most `depth` batches exist; fewer if
// the ledger, which other streams may share, has no room for another. The pipeline waits for the first reservation
// while it holds nothing, and takes the others only if they are free at once, so streams that share a ledger cannot
// deadlock.
//
// Where the system has no thread for reader or worker, the caller runs all three stages, batch after batch.
//
// Errors travel with the batches, so the one returned is the first in the order of the data, independent of timing: a
// truncated block 9 never hides a corrupt block 7.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <utility>

#include "runtime/codec/threads/bounded_queue.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "runtime/codec/threads/trace.hpp"
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
  scheduler::Trace* trace = nullptr;
};

// Runs the three stages on the calling thread, with one batch. The caller holds the reservation for it.
template <class Batch, class Read, class Work, class Write>
Result<void> run_in_turn(const PipelineLimits& limits, Read& read, Work& work, Write& write) {
  Batch batch;
  const auto traced = [&](const char* name, int64_t number, auto stage) {
    const scheduler::SpanHere span(limits.trace, name, number);
    return guarded(stage);
  };
  for (int64_t number = 0;; ++number) {
    if (limits.stop.stop_requested()) return fail("cancelled");
    bool is_filled = false;
    Result<bool> more = traced(scheduler::kReadSpan, number, [&] {
      Result<bool> filled = read(batch);
      is_filled = true;
      return filled;
    });
    if (!is_filled) return tl::unexpected(std::move(more.error()));
    if (more && !*more) return {};
    if (auto done = traced(scheduler::kCodeSpan, number, [&] { return work(batch)->finish(); }); !done) return done;
    if (auto written = traced(scheduler::kWriteSpan, number, [&] { return write(batch); }); !written) return written;
    if (!more) return tl::unexpected(std::move(more.error()));
  }
}

// read(batch) -> Result<bool> fills a batch. False: the input has ended and the batch is empty. An error is returned
// after everything that was read before it has been written; the batch given to the failed call is still transformed
// and written, so a reader may deliver blocks together with the error that follows them.
//
// work(batch) begins a batch and returns a unique_ptr to an object with finish() -> Result<void>. The batch is finished
// after the next one has begun, or at once if no next one is ready, so a device always has work.
//
// write(batch) -> Result<void> consumes a batch.
//
// An exception from a stage counts as an error of that stage; what read() had filled by then is dropped. All
// reservations have been given back when the call returns.
template <class Batch, class Read, class Work, class Write>
Result<void> run_pipeline(const PipelineLimits& limits, Read read, Work work, Write write) {
  struct ReservedBatch {
    scheduler::Reservation permit;  // first: given back after the batch's buffers are freed
    Batch batch;
  };
  struct Load {
    ReservedBatch reserved;
    std::optional<Error> error;  // of the reader: comes after the batch; of the worker: instead of it
    bool holds_data = true;      // false: the batch is not written
    int64_t number = 0;          // of the batch in the stream
  };
  const auto waiting = [&](const char* name, auto& queue) {
    const scheduler::SpanHere span(limits.trace, name);
    return queue.pop();
  };
  scheduler::BoundedQueue<ReservedBatch> free_batches(limits.depth);
  scheduler::BoundedQueue<Load> to_work(limits.depth), to_write(limits.depth);
  // Both parts at once: a stream that waits must not hold budget. Kept for the whole stream.
  const auto first_permit = limits.memory.reserve(limits.fixed_bytes + limits.batch_bytes);
  if (!first_permit) return tl::unexpected(first_permit.error());
  free_batches.push(ReservedBatch{});

  const auto read_all = [&] {
    if (limits.trace != nullptr) limits.trace->name_thread("reader");
    unsigned made = 1;
    for (int64_t number = 0;; ++number) {
      std::optional<ReservedBatch> reserved = free_batches.try_pop();
      if (!reserved && made < limits.depth) {
        if (auto permit = limits.memory.try_reserve(limits.batch_bytes)) {
          reserved = ReservedBatch{std::move(*permit), Batch{}};
          ++made;
        }
      }
      if (!reserved) reserved = waiting(scheduler::kWaitForBuffers, free_batches);
      if (!reserved) break;
      Load load{std::move(*reserved), {}, true, number};
      // On a stop, what the batch holds is left from an earlier use and must not be written.
      load.holds_data = !limits.stop.stop_requested();
      const auto read_batch = [&]() -> Result<bool> {
        if (!load.holds_data) return fail("cancelled");
        const scheduler::SpanHere span(limits.trace, scheduler::kReadSpan, number);
        load.holds_data = false;  // if read() throws
        Result<bool> filled = read(load.reserved.batch);
        load.holds_data = true;
        return filled;
      };
      Result<bool> more = guarded(read_batch);
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
    if (limits.trace != nullptr) limits.trace->name_thread("coder");
    const auto begin = [&](Batch& batch, int64_t number) {
      const scheduler::SpanHere span(limits.trace, scheduler::kBeginSpan, number);
      return guarded([&]() -> Result<decltype(work(batch))> { return work(batch); });
    };
    std::optional<UnderWay> before;
    const auto finish = [&](UnderWay under_way) {
      Load& load = under_way.load;
      const auto finish_batch = [&] {
        const scheduler::SpanHere span(limits.trace, scheduler::kFinishSpan, load.number);
        return guarded([&] { return under_way.begun->finish(); });
      };
      if (Result<void> done = finish_batch(); !done) {
        load.error = std::move(done.error());
        load.holds_data = false;
      }
      under_way.begun.reset();
      const bool last = !load.holds_data;
      return to_write.push(std::move(load)) && !last;
    };
    bool goes_on = true;
    while (goes_on) {
      // Does not block while a batch is running: the reader may be waiting for that very batch.
      std::optional<Load> load = before ? to_work.try_pop() : waiting(scheduler::kWaitForBatch, to_work);
      if (!load && !before) break;
      std::optional<UnderWay> next;
      if (load && load->holds_data) {
        if (limits.stop.stop_requested()) load->error = Error{"cancelled", {}, {}};
        auto begun = begin(load->reserved.batch, load->number);
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
    // The destructor waits for a batch that is still running.
    before.reset();
    to_write.close();
  };

  // Exceptions of the queues themselves.
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
  // The worker comes first: without a reader thread no input has been consumed, so the caller can start over.
  auto worker = try_thread(std::ref(worker_stage));
  auto reader = worker ? try_thread(std::ref(reader_stage)) : std::nullopt;
  if (!reader) {
    to_work.close();
    if (worker) worker->join();
    return run_in_turn<Batch>(limits, read, work, write);
  }

  Result<void> outcome = guarded([&]() -> Result<void> {
    while (auto load = waiting(scheduler::kWaitForBatch, to_write)) {
      if (load->holds_data) {
        const scheduler::SpanHere span(limits.trace, scheduler::kWriteSpan, load->number);
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
