// CUDA graphs: kernels put on a stream while it is captured are launched together.
#pragma once

#include <optional>

#include "runtime/driver/context.hpp"

namespace ptxkit::driver {

class Graph : public Owner<CuGraphExec, &Api::graph_exec_destroy> {
 public:
  // False for drivers before CUDA 11.4, which lack the calls.
  static bool is_supported(const Context& context);

  // Starts a capture: until end() the stream accepts only launches and executes none of them. Other threads and streams
  // are not affected.
  static Result<void> begin(const Stream& stream);
  // Ends the capture. `before`, the graph of an earlier capture, is updated if it has the same kernels in the same
  // order, which is cheaper than a new graph. After an error the stream no longer captures.
  static Result<Graph> end(ContextPointer context, const Stream& stream, std::optional<Graph> before);

  // Asynchronous.
  Result<void> launch(const Stream& stream) const;

 private:
  using Owner::Owner;
};

}  // namespace ptxkit::driver
