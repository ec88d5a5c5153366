// What a module declares: levels, producer, kernels with the layout of their parameters, functions, variables, and what
// a launch has to know.
#pragma once

#include <string>
#include <vector>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::inspect {

// Where each parameter lies in the buffer of a launch: at the next multiple of its alignment (CUDA driver API,
// CU_LAUNCH_PARAM_BUFFER_POINTER).
struct ParameterLayout {
  struct Parameter {
    ptx::VariableId id = ptx::kNone;
    uint64_t offset_bytes = 0;
  };
  std::vector<Parameter> parameters;
  uint64_t size_bytes = 0;
  uint32_t align_bytes = 1;
};
ParameterLayout parameter_layout(const ptx::Module& module, const ptx::Function& function);

// What wrote the text, from the comments before `.version`: "NVIDIA NVVM Compiler, CUDA 13.0, V13.0.88"; empty where no
// comment tells.
std::string producer_of(std::string_view text);

std::string info_text(const ptx::Module& module);
// An object, without a final newline; see docs/ptx-debug.md.
std::string info_json(const ptx::Module& module);

}  // namespace ptxkit::inspect
