// Kernels as one submission: what is put on a stream while it is captured, launched together.
#pragma once

#include <optional>

#include "runtime/driver/context.hpp"

namespace ptxkit::driver {

class Graph : public Owner<CuGraphExec, &Api::graph_exec_destroy> {
 public:
  // Drivers before CUDA 11.4 have no such calls.
  static bool is_supported(const Context& context);

  // From here to end() the stream takes launches and nothing else, and does none of them. Other threads, and other
  // streams, go on as before.
  static Result<void> begin(const Stream& stream);
  // `before`, the graph of an earlier capture, is brought up to date where it holds the same kernels in the same order:
  // cheaper than another one. After an error the stream captures no more.
  static Result<Graph> end(ContextPointer context, const Stream& stream, std::optional<Graph> before);

  // Asynchronous.
  Result<void> launch(const Stream& stream) const;

 private:
  using Owner::Owner;
};

}  // namespace ptxkit::driver
