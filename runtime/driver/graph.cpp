#include "runtime/driver/graph.hpp"

namespace ptxkit::driver {
namespace {

// CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: other threads may allocate and free during the capture.
constexpr int kCaptureOfThisThread = 1;

// Makes one driver call with the context current.
template <class Call>
Result<void> on(const Context& context, const char* name, Call call) {
  if (auto current = context.make_current(); !current) return current;
  return context.check(call(), name);
}

}  // namespace

bool Graph::is_supported(const Context& context) {
  const Api& api = context.api();
  return api.stream_begin_capture != nullptr && api.stream_end_capture != nullptr && api.graph_instantiate != nullptr &&
         api.graph_exec_update != nullptr && api.graph_launch != nullptr && api.graph_destroy != nullptr &&
         api.graph_exec_destroy != nullptr;
}

Result<void> Graph::begin(const Stream& stream) {
  const Context& context = stream.context();
  return on(context, "cuStreamBeginCapture",
            [&] { return context.api().stream_begin_capture(stream.handle(), kCaptureOfThisThread); });
}

Result<Graph> Graph::end(ContextPointer context, const Stream& stream, std::optional<Graph> before) {
  const Api& api = context->api();
  CuGraph captured = nullptr;
  auto done = on(*context, "cuStreamEndCapture", [&] { return api.stream_end_capture(stream.handle(), &captured); });
  if (!done) return tl::unexpected(done.error());
  if (before) {
    CuGraphNode failed_node = nullptr;
    int update_result = 0;
    // A failed update is no error of the context: the graphs differ, and a new one is made.
    if (api.graph_exec_update(before->handle(), captured, &failed_node, &update_result) == 0) {
      api.graph_destroy(captured);
      return std::move(*before);
    }
  }
  CuGraphExec made = nullptr;
  done = context->check(api.graph_instantiate(&made, captured, 0), "cuGraphInstantiate");
  api.graph_destroy(captured);
  if (!done) return tl::unexpected(done.error());
  return Graph(std::move(context), made);
}

Result<void> Graph::launch(const Stream& stream) const {
  return on(context(), "cuGraphLaunch", [&] { return context().api().graph_launch(handle(), stream.handle()); });
}

}  // namespace ptxkit::driver
