// libptxkit_trace.so: preloaded into a CUDA program by `ptx-debug trace`. It saves every image that the program passes
// to the driver as a file in $PTXKIT_TRACE_FOLDER, and passes the call on.
//
// Programs reach the driver in three ways, all of which are intercepted: linked with libcuda (the functions below take
// precedence), dlsym on a handle (dlsym is replaced), and cuGetProcAddress, which the CUDA runtime uses. The library
// needs only libc, so that it loads into any program.
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

namespace {

// `__fatBinC_Wrapper_t` and the header of a fat binary, as in the toolkit's fatbinary_section.h.
constexpr uint32_t kWrapperMagic = 0x466243b1, kFatBinaryMagic = 0xba55ed50;
struct Wrapper {
  uint32_t magic, version;
  const void* data;
};
struct FatBinaryHeader {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t size_bytes;  // without the header
};

using Dlsym = void* (*)(void*, const char*);

Dlsym real_dlsym() {
  static const auto found = [] {
    for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
      if (void* symbol = ::dlvsym(RTLD_NEXT, "dlsym", version)) return reinterpret_cast<Dlsym>(symbol);
    }
    std::fputs("ptxkit trace: this C library has no dlsym that can be passed on to\n", stderr);
    std::abort();
  }();
  return found;
}

// The size of an ELF image: the end of its section headers or of its last section.
size_t elf_bytes(const unsigned char* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  size_t end = header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, image + header.e_shoff + size_t{i} * header.e_shentsize, sizeof section);
    if (section.sh_type != SHT_NOBITS && section.sh_offset + section.sh_size > end)
      end = section.sh_offset + section.sh_size;
  }
  return end;
}

void save(const char* call, const void* image, size_t size_bytes) {
  static std::atomic<unsigned> count{0};
  const char* folder = std::getenv("PTXKIT_TRACE_FOLDER");
  if (folder == nullptr) return;
  char path[4096];
  std::FILE* file;
  do {  // a program that has replaced itself by another counts from 1 on again
    std::snprintf(path, sizeof path, "%s/%d.%05u.%s", folder, ::getpid(), ++count, call);
    file = std::fopen(path, "wbx");
  } while (file == nullptr && errno == EEXIST);
  const bool written = file != nullptr && std::fwrite(image, 1, size_bytes, file) == size_bytes;
  if ((file != nullptr && std::fclose(file) != 0) || !written)
    std::fprintf(stderr, "ptxkit trace: cannot write %s\n", path);
}

// Saves what cuModuleLoadData accepts: a fat binary, wrapped or not, a cubin, or PTX text that ends in NUL.
void save_image(const char* call, const void* image) {
  if (image == nullptr) return;
  uint32_t magic;
  std::memcpy(&magic, image, sizeof magic);
  if (magic == kWrapperMagic) {
    image = static_cast<const Wrapper*>(image)->data;
    std::memcpy(&magic, image, sizeof magic);
  }
  if (magic == kFatBinaryMagic) {
    FatBinaryHeader header;
    std::memcpy(&header, image, sizeof header);
    save(call, image, header.header_bytes + header.size_bytes);
  } else if (std::memcmp(image, ELFMAG, SELFMAG) == 0) {
    save(call, image, elf_bytes(static_cast<const unsigned char*>(image)));
  } else {
    save(call, image, std::strlen(static_cast<const char*>(image)));
  }
}

void save_file(const char* call, const char* path) {
  std::FILE* const file = path != nullptr ? std::fopen(path, "rb") : nullptr;
  if (file == nullptr) return;  // the driver reports the error
  const long size = std::fseek(file, 0, SEEK_END) == 0 ? std::ftell(file) : -1;
  if (size < 0 || std::fseek(file, 0, SEEK_SET) != 0) {
    std::fclose(file);
    return;
  }
  char* const bytes = static_cast<char*>(std::malloc(size > 0 ? static_cast<size_t>(size) : 1));
  if (bytes != nullptr && size > 0 &&
      std::fread(bytes, 1, static_cast<size_t>(size), file) == static_cast<size_t>(size))
    save(call, bytes, static_cast<size_t>(size));
  std::free(bytes);
  std::fclose(file);
}

// The driver's function for each of ours, once it is known.
enum Call : unsigned {
  kModuleLoad,
  kModuleLoadData,
  kModuleLoadDataEx,
  kModuleLoadFatBinary,
  kLibraryLoadData,
  kLibraryLoadFromFile,
  kLinkAddData,
  kLinkAddFile,
  kGetProcAddress,
  kGetProcAddress2,
  kCallCount
};
void* real[kCallCount];

template <class Function>
Function* real_function(Call call, const char* exported) {
  if (real[call] == nullptr) real[call] = real_dlsym()(RTLD_NEXT, exported);
  return reinterpret_cast<Function*>(real[call]);
}

constexpr int kNotFound = 500, kVersionOfSecondGetProcAddress = 12000;

#define FORWARD_CALL(call, exported, ...)                                   \
  const auto function = real_function<decltype(exported)>(call, #exported); \
  return function != nullptr ? function(__VA_ARGS__) : kNotFound

}  // namespace

extern "C" {

int cuModuleLoad(void** module, const char* path) {
  save_file("cuModuleLoad", path);
  FORWARD_CALL(kModuleLoad, cuModuleLoad, module, path);
}
int cuModuleLoadData(void** module, const void* image) {
  save_image("cuModuleLoadData", image);
  FORWARD_CALL(kModuleLoadData, cuModuleLoadData, module, image);
}
int cuModuleLoadDataEx(void** module, const void* image, unsigned count, int* options, void** values) {
  save_image("cuModuleLoadDataEx", image);
  FORWARD_CALL(kModuleLoadDataEx, cuModuleLoadDataEx, module, image, count, options, values);
}
int cuModuleLoadFatBinary(void** module, const void* image) {
  save_image("cuModuleLoadFatBinary", image);
  FORWARD_CALL(kModuleLoadFatBinary, cuModuleLoadFatBinary, module, image);
}
int cuLibraryLoadData(void** library, const void* code, int* jit, void** jit_values, unsigned jit_count, int* options,
                      void** values, unsigned count) {
  save_image("cuLibraryLoadData", code);
  FORWARD_CALL(kLibraryLoadData, cuLibraryLoadData, library, code, jit, jit_values, jit_count, options, values, count);
}
int cuLibraryLoadFromFile(void** library, const char* path, int* jit, void** jit_values, unsigned jit_count,
                          int* options, void** values, unsigned count) {
  save_file("cuLibraryLoadFromFile", path);
  FORWARD_CALL(kLibraryLoadFromFile, cuLibraryLoadFromFile, library, path, jit, jit_values, jit_count, options, values,
               count);
}
int cuLinkAddData_v2(void* state, int type, void* data, size_t size, const char* name, unsigned count, int* options,
                     void** values) {
  save("cuLinkAddData", data, size);
  FORWARD_CALL(kLinkAddData, cuLinkAddData_v2, state, type, data, size, name, count, options, values);
}
int cuLinkAddFile_v2(void* state, int type, const char* path, unsigned count, int* options, void** values) {
  save_file("cuLinkAddFile", path);
  FORWARD_CALL(kLinkAddFile, cuLinkAddFile_v2, state, type, path, count, options, values);
}
int cuGetProcAddress(const char* symbol, void** function, int version, uint64_t flags);
int cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags, int* status);

}  // extern "C"

namespace {

struct Wrapped {
  const char* name;      // for dlsym
  const char* api_name;  // for cuGetProcAddress
  Call call;
  void* wrapper;
};

const Wrapped kWrapped[] = {
    {"cuModuleLoad", "cuModuleLoad", kModuleLoad, reinterpret_cast<void*>(&cuModuleLoad)},
    {"cuModuleLoadData", "cuModuleLoadData", kModuleLoadData, reinterpret_cast<void*>(&cuModuleLoadData)},
    {"cuModuleLoadDataEx", "cuModuleLoadDataEx", kModuleLoadDataEx, reinterpret_cast<void*>(&cuModuleLoadDataEx)},
    {"cuModuleLoadFatBinary", "cuModuleLoadFatBinary", kModuleLoadFatBinary,
     reinterpret_cast<void*>(&cuModuleLoadFatBinary)},
    {"cuLibraryLoadData", "cuLibraryLoadData", kLibraryLoadData, reinterpret_cast<void*>(&cuLibraryLoadData)},
    {"cuLibraryLoadFromFile", "cuLibraryLoadFromFile", kLibraryLoadFromFile,
     reinterpret_cast<void*>(&cuLibraryLoadFromFile)},
    {"cuLinkAddData_v2", "cuLinkAddData", kLinkAddData, reinterpret_cast<void*>(&cuLinkAddData_v2)},
    {"cuLinkAddFile_v2", "cuLinkAddFile", kLinkAddFile, reinterpret_cast<void*>(&cuLinkAddFile_v2)},
    {"cuGetProcAddress", nullptr, kGetProcAddress, reinterpret_cast<void*>(&cuGetProcAddress)},
    {"cuGetProcAddress_v2", nullptr, kGetProcAddress2, reinterpret_cast<void*>(&cuGetProcAddress_v2)},
};

// Replaces the driver's function that was found by ours.
void exchange(void** function, const Wrapped& ours) {
  if (*function == nullptr || *function == ours.wrapper) return;
  real[ours.call] = *function;
  *function = ours.wrapper;
}

void exchange_by_api_name(const char* symbol, void** function, int version) {
  if (symbol == nullptr || function == nullptr) return;
  for (const Wrapped& ours : kWrapped) {
    if (ours.api_name != nullptr && std::strcmp(symbol, ours.api_name) == 0) exchange(function, ours);
    const bool is_second = ours.call == kGetProcAddress2;
    if (ours.api_name == nullptr && std::strcmp(symbol, "cuGetProcAddress") == 0 &&
        is_second == (version >= kVersionOfSecondGetProcAddress))
      exchange(function, ours);
  }
}

}  // namespace

extern "C" {

int cuGetProcAddress(const char* symbol, void** function, int version, uint64_t flags) {
  const auto next = real_function<decltype(cuGetProcAddress)>(kGetProcAddress, "cuGetProcAddress");
  const int code = next != nullptr ? next(symbol, function, version, flags) : kNotFound;
  if (code == 0) exchange_by_api_name(symbol, function, version);
  return code;
}
int cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags, int* status) {
  const auto next = real_function<decltype(cuGetProcAddress_v2)>(kGetProcAddress2, "cuGetProcAddress_v2");
  const int code = next != nullptr ? next(symbol, function, version, flags, status) : kNotFound;
  if (code == 0) exchange_by_api_name(symbol, function, version);
  return code;
}

void* dlsym(void* handle, const char* name) {
  // A tail call: the C library searches behind the library that the call returns to, which must not be this one.
  if (handle == RTLD_NEXT) return real_dlsym()(handle, name);
  void* function = real_dlsym()(handle, name);
  for (const Wrapped& ours : kWrapped) {
    if (std::strcmp(name, ours.name) == 0) exchange(&function, ours);
  }
  return function;
}

}  // extern "C"
