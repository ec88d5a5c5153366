// The program between definitions in the DSL and a library with their images. cmake/PtxkitKernels.cmake builds and runs
// it, for the kernels of this project and for those of others:
//
//   PROGRAM emit FOLDER TARGETS VARIANTS                   PTX and launch file of each kernel, target and variant
//   PROGRAM embed FOLDER REPORT.json NAMESPACE OUTPUT.cpp  the C++ source that embeds the PTX and the verdicts
//
// TARGETS and VARIANTS are lists with commas: sm_75,sm_80 and release,debug. FOLDER/images.json lists what was emitted.
// A file whose content has not changed is not touched.
#pragma once

#include <string>
#include <vector>

#include "builder/define.hpp"

namespace ptxkit::dsl {

// The body of main(). `kernels` is called by `emit`. Errors, also those of definitions, are printed to standard error.
// Returns the exit status: 0 if all files are written, 64 for wrong usage, 1 otherwise.
int run_kernel_program(int argc, char** argv, std::vector<KernelDefinition> (*kernels)());

// The two verbs. Both throw std::runtime_error if a file cannot be read or written.
void emit_images(const std::vector<KernelDefinition>& kernels, const std::string& folder,
                 const std::vector<unsigned>& targets, const std::vector<Variant>& variants);
// REPORT.json is what `ptx-debug analyze --falsify --json` wrote for the PTX of `folder`. A text without a verdict in
// it is an error.
void embed_images(const std::string& folder, const std::string& report, const std::string& name_space,
                  const std::string& output);

}  // namespace ptxkit::dsl
