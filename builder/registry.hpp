// PTXKIT_KERNEL registers a definition, so that the program which ptxkit_add_kernels builds finds it:
//
//   PTXKIT_KERNEL(add_one) {
//     return define(KernelSpec{.name = "add_one", .block = 128}, [](Kernel& k, ...) { ... });
//   }
//
// The source must be linked as an object: a linker takes nothing out of a library that no other source names.
#pragma once

#include <vector>

#include "builder/define.hpp"

namespace ptxkit::dsl {

using KernelMaker = KernelDefinition (*)();

// All registered kernels, sorted by name. Throws DslError if two have one name, and what a definition throws.
std::vector<KernelDefinition> registered_kernels();

class KernelRegistration {
 public:
  explicit KernelRegistration(KernelMaker maker) noexcept;
};

}  // namespace ptxkit::dsl

#define PTXKIT_KERNEL(name)                                                   \
  static ::ptxkit::dsl::KernelDefinition name();                              \
  static const ::ptxkit::dsl::KernelRegistration name##_is_registered(&name); \
  static ::ptxkit::dsl::KernelDefinition name()
