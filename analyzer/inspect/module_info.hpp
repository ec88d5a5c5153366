// The declarations of a module: levels, producer, kernels with the layout of their parameters, functions, variables,
// and the facts that a launch needs.
#pragma once

#include <string>
#include <vector>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::inspect {

// The place of each parameter in a launch's parameter buffer: the next multiple of its alignment (CUDA driver API,
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

// The tool that wrote the text, from the comments before `.version`: "NVIDIA NVVM Compiler, CUDA 13.0, V13.0.88"; empty
// where the comments do not name it.
std::string producer_of(std::string_view text);

std::string info_text(const ptx::Module& module);
// A JSON object without a final newline; see docs/ptx-debug.md.
std::string info_json(const ptx::Module& module);

}  // namespace ptxkit::inspect
