// Finds the PTX in a file: PTX itself, a fat binary, or a file that fat binaries are linked into.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/result.hpp"

namespace ptxkit::container {

// One PTX text. Its name for messages is that of a PTX file, or a file's name with the place in it, as in
// "app:fatbin[2].sm_80.ptx" or "libk.a(k.o):fatbin[0].sm_90a.ptx". Containers are numbered from 0 over the whole file.
struct PtxImage {
  std::string name;
  std::string text;
};

struct Contents {
  std::vector<PtxImage> images;           // in file order
  std::vector<std::string> machine_code;  // targets of the cubins, "sm_80", in file order
};

// Whether the bytes begin like one of the formats below other than PTX text. The first 64 bytes are enough.
bool is_container(std::string_view bytes);

// Reads all images of a file: PTX text; a fat binary (nvcc -fatbin); an ELF file (executable, object, shared library),
// from its sections .nv_fatbin and __nv_relfatbin; a cubin, from its section .nv_debug_ptx_txt, which -lineinfo and -G
// write; a static library of such objects. Bytes of no container are taken as PTX text. Errors: a damaged or truncated
// container, with its place; `where` begins with `path`.
Result<Contents> read_images(std::string bytes, const std::string& path);

}  // namespace ptxkit::container
