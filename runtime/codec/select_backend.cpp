#include "runtime/codec/select_backend.hpp"

#include <fmt/format.h>

namespace ptxkit::codec {

Result<SelectedBackend> select_backend(const BackendRequest& request, Executor& executor) {
  if (request.name == "cpu" || request.name == "auto") return SelectedBackend{make_cpu_backend(executor), {}, false};
  return fail(fmt::format("the {} backend is not part of this build", request.name), {}, "use --backend cpu");
}

}  // namespace ptxkit::codec
