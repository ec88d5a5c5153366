// Requests for a backend on the fake driver.
#pragma once

#include <string>
#include <utility>

#include "fkr_tests/cases/cuda/fake_gpu.hpp"
#include "runtime/codec/select_backend.hpp"

namespace ptxkit::testing {

// `images` must outlive the backend.
inline codec::BackendRequest request_on_fake_gpu(FakeImages& images, std::string name, codec::Policy policy) {
  codec::BackendRequest request;
  request.name = std::move(name);
  request.policy = policy;
  request.find_image = [&images](std::string_view kernel, uint32_t, uint32_t) { return images.find(kernel); };
  request.cuda_library = FAKE_CUDA;
  return request;
}

}  // namespace ptxkit::testing
