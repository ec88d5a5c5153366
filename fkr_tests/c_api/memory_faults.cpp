// Makes allocations of the library fail: one of them, or all from one on, each in a child process. The call ends with a
// status, its results are right if it says so, and after one failure the next call works.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "ptxkit.h"

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

// The allocation that fails, counted from 0, and whether all behind it fail, too; -1: none.
std::atomic<long> count{0}, first_failure{-1};
bool fails_on = false;

bool fails() {
  const long first = first_failure;
  if (first < 0) return false;
  const long number = count++;
  return fails_on ? number >= first : number == first;
}
template <class Allocate>
void* unless_it_fails(Allocate allocate) {
  if (!fails()) return allocate();
  errno = ENOMEM;
  return nullptr;
}

}  // namespace

extern "C" {
void* malloc(size_t size) {
  return unless_it_fails([=] { return __libc_malloc(size); });
}
void* calloc(size_t items, size_t size) {
  return unless_it_fails([=] { return __libc_calloc(items, size); });
}
void* realloc(void* memory, size_t size) {
  return unless_it_fails([=] { return __libc_realloc(memory, size); });
}
void* aligned_alloc(size_t alignment, size_t size) {
  return unless_it_fails([=] { return __libc_memalign(alignment, size); });
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = aligned_alloc(alignment, size);
  return *memory != nullptr ? 0 : ENOMEM;
}
}

namespace {

constexpr size_t kRawBytes = 400'000;
// Adds 1 to a number in memory.
constexpr char kPtx[] = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry one(.param .u64 p) {
  .reg .b64 %a;
  .reg .b32 %x;
  ld.param.u64 %a, [p];
  ld.global.u32 %x, [%a];
  add.u32 %x, %x, 1;
  st.global.u32 [%a], %x;
  ret;
}
)";

enum Ended { fine = 0, reached = 1, wrong_status = 50, wrong_result, not_usable };

struct Memory {
  std::vector<uint8_t> bytes;
  size_t used = 0;
};

// Neither allocates.
int64_t read_from(void* user, void* to, size_t size) {
  auto& memory = *static_cast<Memory*>(user);
  size = std::min(size, memory.bytes.size() - memory.used);
  std::memcpy(to, memory.bytes.data() + memory.used, size);
  memory.used += size;
  return static_cast<int64_t>(size);
}
int write_to(void* user, const void* from, size_t size) {
  auto& memory = *static_cast<Memory*>(user);
  if (size > memory.bytes.size() - memory.used) return 1;
  std::memcpy(memory.bytes.data() + memory.used, from, size);
  memory.used += size;
  return 0;
}

struct Call {
  std::string name;
  // Sets `is_right` to whether the result is, where the status is PTXKIT_OK.
  std::function<ptxkit_status(ptxkit_context*, bool& is_right)> run;
};

std::vector<uint8_t> raw_bytes() {
  std::vector<uint8_t> raw(kRawBytes);
  uint32_t state = 1;
  for (size_t i = 0; i < raw.size(); ++i) {
    state = state * 1664525 + 1013904223;
    raw[i] = static_cast<uint8_t>(i < raw.size() * 3 / 4 ? "abcdefgh"[state >> 29] : state >> 24);
  }
  return raw;
}

ptxkit_context* open_context() {
  ptxkit_context_options options = PTXKIT_CONTEXT_OPTIONS_DEFAULTS;
  options.policy = PTXKIT_POLICY_CPU;
  options.cpu_threads = 2;
  ptxkit_context* context = nullptr;
  return ptxkit_context_create(&options, &context) == PTXKIT_OK ? context : nullptr;
}

ptxkit_status convert(ptxkit_context* context, bool compresses, ptxkit_codec codec, Memory& from, Memory& into) {
  ptxkit_stream_options options = PTXKIT_STREAM_OPTIONS_DEFAULTS;
  options.codec = codec;
  from.used = into.used = 0;
  const auto call = compresses ? ptxkit_compress_stream : ptxkit_decompress_stream;
  return call(context, &options, read_from, &from, write_to, &into, nullptr);
}

void add_streams(std::vector<Call>& calls) {
  static Memory raw{raw_bytes()}, out{std::vector<uint8_t>(2 * kRawBytes)};
  for (const auto& [name, codec] : std::vector<std::pair<std::string, ptxkit_codec>>{{"lz4", PTXKIT_CODEC_LZ4},
                                                                                     {"zstd", PTXKIT_CODEC_ZSTD},
                                                                                     {"gzip", PTXKIT_CODEC_GZIP},
                                                                                     {"lzr", 257},
                                                                                     {"lzh", 258},
                                                                                     {"bbw", 259},
                                                                                     {"rans", PTXKIT_CODEC_RANS}}) {
    auto* const packed = new Memory{std::vector<uint8_t>(2 * kRawBytes)};
    ptxkit_context* const context = open_context();
    if (context == nullptr || convert(context, true, codec, raw, *packed) != PTXKIT_OK) {
      std::printf("%s: %s\n", name.c_str(), ptxkit_last_error());
      std::exit(1);
    }
    ptxkit_context_destroy(context);
    packed->bytes.resize(packed->used);
    calls.push_back({"compress " + name, [=](ptxkit_context* of, bool& is_right) {
                       const ptxkit_status status = convert(of, true, codec, raw, out);
                       is_right = out.used == packed->bytes.size() &&
                                  std::memcmp(out.bytes.data(), packed->bytes.data(), out.used) == 0;
                       return status;
                     }});
    calls.push_back({"decompress " + name, [=](ptxkit_context* of, bool& is_right) {
                       const ptxkit_status status = convert(of, false, codec, *packed, out);
                       is_right = (status != PTXKIT_OK || out.used == kRawBytes) &&
                                  std::memcmp(out.bytes.data(), raw.bytes.data(), out.used) == 0;
                       return status;
                     }});
  }
}

void add_analysis(std::vector<Call>& calls) {
  calls.push_back({"analyze", [](ptxkit_context*, bool& is_right) {
                     char* report = nullptr;
                     const ptxkit_status status = ptxkit_analyze(kPtx, sizeof kPtx - 1, nullptr, &report, nullptr);
                     is_right = status != PTXKIT_OK || std::strstr(report, "F101") != nullptr;
                     ptxkit_string_free(report);
                     return status;
                   }});
  calls.push_back({"launch", [](ptxkit_context*, bool& is_right) {
                     ptxkit_module* module = nullptr;
                     ptxkit_status status = ptxkit_module_load(kPtx, sizeof kPtx - 1, nullptr, &module);
                     if (status != PTXKIT_OK) return status;
                     uint32_t number = 1;
                     const ptxkit_argument argument = {PTXKIT_ARGUMENT_IN_OUT, 0, &number, sizeof number, nullptr};
                     const ptxkit_launch_shape shape{};
                     char* report = nullptr;
                     status = ptxkit_launch(module, "one", &shape, &argument, 1, nullptr, &report, nullptr);
                     is_right = status != PTXKIT_OK || number == 2;
                     ptxkit_string_free(report);
                     ptxkit_module_destroy(module);
                     return status;
                   }});
  calls.push_back({"create a context", [](ptxkit_context*, bool& is_right) {
                     ptxkit_context_options options = PTXKIT_CONTEXT_OPTIONS_DEFAULTS;
                     options.policy = PTXKIT_POLICY_CPU;
                     options.cpu_threads = 2;
                     ptxkit_context* context = nullptr;
                     const ptxkit_status status = ptxkit_context_create(&options, &context);
                     is_right = (status == PTXKIT_OK) == (context != nullptr);
                     ptxkit_context_destroy(context);
                     return status;
                   }});
}

// In a child process, which has no thread of another context.
int run_once(const Call& call, long number, bool all_behind) {
  alarm(20);
  ptxkit_context* const context = open_context();
  if (context == nullptr) return not_usable;
  bool is_right = true;
  fails_on = all_behind;
  first_failure = number;
  const ptxkit_status status = call.run(context, is_right);
  const bool is_reached = count > number;
  first_failure = -1;
  if (status != PTXKIT_OK && status != PTXKIT_NO_MEMORY) {
    std::printf("%s\n", ptxkit_last_error());
    return wrong_status;
  }
  if (status == PTXKIT_OK ? !is_right : !is_right && call.name.starts_with("decompress")) return wrong_result;
  if (call.run(context, is_right) != PTXKIT_OK || !is_right) {
    std::printf("afterwards: %s\n", ptxkit_last_error());
    return not_usable;
  }
  ptxkit_context_destroy(context);
  return is_reached ? reached : fine;
}

// Every allocation of the first 60, and about every sixtieth of the rest. Returns how many faults ended badly.
int check(const Call& call, bool all_behind) {
  int bad_count = 0;
  long runs = 0;
  for (long number = 0;; number += 1 + number / 60, ++runs) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      const int ended = run_once(call, number, all_behind);
      std::fflush(stdout);
      _exit(ended);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > reached) {
      std::printf("FAILED: %s, allocation %ld%s: %s %d\n", call.name.c_str(), number,
                  all_behind ? " and all behind" : "", WIFEXITED(status) ? "ended with" : "killed by signal",
                  WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
      if (++bad_count == 3) return bad_count;
    } else if (WEXITSTATUS(status) == fine) {
      break;
    }
  }
  std::printf("%s%s: %ld allocations failed\n", call.name.c_str(), all_behind ? ", all behind" : "", runs);
  return bad_count + (runs == 0);
}

}  // namespace

// With arguments, a call's name, a number and "one" or "all": that fault alone, in this process, for a debugger.
int main(int argument_count, char** arguments) {
  std::vector<Call> calls;
  add_streams(calls);
  add_analysis(calls);
  if (argument_count == 4) {
    for (const Call& call : calls)
      if (call.name == arguments[1])
        return run_once(call, std::atol(arguments[2]), std::strcmp(arguments[3], "all") == 0);
  }
  int bad_count = 0;
  for (const Call& call : calls) bad_count += check(call, false) + check(call, true);
  return bad_count != 0;
}
