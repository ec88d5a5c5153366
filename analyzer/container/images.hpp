// The PTX in a file, whatever the file is: PTX itself, a fat binary, or what fat binaries are linked into.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/result.hpp"

namespace ptxkit::container {

// One PTX text, with a name for messages: the file's own for a PTX file, else the file's and its place in it, as in
// "app:fatbin[2].sm_80.ptx" or "libk.a(k.o):fatbin[0].sm_90a.ptx". Containers are counted from 0 over the whole file.
struct PtxImage {
  std::string name;
  std::string text;
};

struct Contents {
  std::vector<PtxImage> images;           // in the file's order
  std::vector<std::string> machine_code;  // targets of the cubins in it, "sm_80", in the file's order
};

// Whether the bytes begin as one of the formats below that are not PTX text; the first 64 bytes are enough.
bool is_container(std::string_view bytes);

// What is in a file. Read are: PTX text; a fat binary (nvcc -fatbin); an ELF file (executable, object, shared library)
// by its sections .nv_fatbin and __nv_relfatbin; a cubin by its section .nv_debug_ptx_txt, which -lineinfo and -G
// write; a static library of such objects. Bytes of no container are taken for PTX text. Errors: a damaged or truncated
// container, with its place; `where` begins with `path`.
Result<Contents> read_images(std::string bytes, const std::string& path);

}  // namespace ptxkit::container
