// Functions that device code calls without a body in its module. vprintf takes a format and a buffer with the arguments
// in order, each aligned to its size: 4 for int, 8 for long long, double and pointers (CUDA C++ Programming Guide,
// "Formatted output").
#include "runtime/emulator/engine/builtins.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "runtime/emulator/instructions/memory/access.hpp"

namespace ptxkit::emulator {

namespace {

constexpr size_t kMaxTextBytes = 4096;
constexpr uint64_t kMaxFieldBytes = 4096;  // larger widths and precisions count as this

// Loads bytes at a generic address of one lane, as the lane's own load does. Returns false after a fault.
bool read_bytes(Warp& warp, unsigned lane, Address address, void* out, size_t size_bytes) {
  const Launch& launch = *warp.cta->launch;
  const Code load;  // generic, from no register
  Places places;
  places.address[lane] =
      launch.image->module->address_size == 32 ? widen_address(static_cast<uint32_t>(address)) : address;
  if (!launch.checked)
    locate_at_unchecked(warp, load, 1u << lane, size_bytes, places);
  else if (!locate_at_checked(warp, load, 1u << lane, size_bytes, 1, AccessKind::load, places))
    return false;
  std::memcpy(out, places.bytes[lane], size_bytes);
  return true;
}

// The text up to its NUL, at most kMaxTextBytes of it; nothing after a fault.
std::optional<std::string> read_text(Warp& warp, unsigned lane, Address address) {
  std::string text;
  for (char c = 0; text.size() < kMaxTextBytes; text += c) {
    if (!read_bytes(warp, lane, address + text.size(), &c, 1)) return std::nullopt;
    if (c == 0) break;
  }
  return text;
}

// The arguments of one vprintf call, in order. After a fault they are 0.
struct ArgumentReader {
  Warp& warp;
  unsigned lane;
  Address at;
  bool has_failed = false;

  template <class T>
  T next() {
    at = (at + sizeof(T) - 1) & ~Address{sizeof(T) - 1};
    T value{};
    if (!has_failed) has_failed = !read_bytes(warp, lane, at, &value, sizeof value);
    at += sizeof value;
    return value;
  }
  std::string next_text() {
    const auto address = next<uint64_t>();
    if (has_failed) return {};
    auto text = read_text(warp, lane, address);
    has_failed = !text;
    return std::move(text).value_or("");
  }
};

// A conversion specification up to its conversion, with no number above kMaxFieldBytes: the host's printf would fill
// fields of 2 GiB.
std::string bounded(std::string_view specification) {
  std::string out;
  for (size_t at = 0; at < specification.size();) {
    const size_t end = std::min(specification.find_first_not_of("0123456789", at), specification.size());
    if (end == at) {
      out += specification[at++];
      continue;
    }
    if (specification[at] == '0') out += '0';  // a flag
    uint64_t number = 0;
    std::from_chars(specification.data() + at, specification.data() + end, number);
    if (number != 0) out += std::to_string(std::min(number, kMaxFieldBytes));
    at = end;
  }
  return out;
}

// Formats one argument with the host's printf; `specification` has been validated and is bounded.
std::string convert(ArgumentReader& arguments, const std::string& specification, char conversion, bool wide) {
  char text[kMaxFieldBytes + 512];  // the largest double has 309 digits before the point
  auto print = [&](const std::string& how, auto value) {
    const int length = std::snprintf(text, sizeof text, how.c_str(), value);
    return std::string(text, static_cast<size_t>(std::clamp(length, 0, static_cast<int>(sizeof text) - 1)));
  };
  switch (conversion) {
    case 'd':
    case 'i':
      return wide ? print(specification + "lld", static_cast<long long>(arguments.next<int64_t>()))
                  : print(specification + "d", arguments.next<int32_t>());
    case 'u':
    case 'x':
    case 'X':
    case 'o':
      return wide
                 ? print(specification + "ll" + conversion, static_cast<unsigned long long>(arguments.next<uint64_t>()))
                 : print(specification + conversion, arguments.next<uint32_t>());
    case 'c':
      return print(specification + "c", arguments.next<int32_t>());
    case 'p':
      return fmt::format("{:#x}", arguments.next<uint64_t>());
    case 's':
      return print(specification + "s", arguments.next_text().c_str());
    default:
      return print(specification + conversion, arguments.next<double>());
  }
}

// Nothing after a fault.
std::optional<std::string> formatted(Warp& warp, unsigned lane, const std::string& format, Address buffer,
                                     uint32_t& argument_count) {
  ArgumentReader arguments{warp, lane, buffer};
  std::string out;
  for (size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%') {
      out += format[at];
      continue;
    }
    size_t end = at + 1;
    std::string specification = "%";
    while (end < format.size() && std::string_view("-+ #0123456789.").find(format[end]) != std::string_view::npos &&
           specification.size() < 12)
      specification += format[end++];
    bool wide = false;
    while (end < format.size() && std::string_view("hlLqjzt").find(format[end]) != std::string_view::npos)
      wide |= format[end++] != 'h';
    const char conversion = end < format.size() ? format[end] : '\0';
    if (conversion == '%')
      out += '%';
    else if (conversion && std::string_view("diuxXocpsfFeEgGaA").find(conversion) != std::string_view::npos) {
      out += convert(arguments, bounded(specification), conversion, wide);
      if (arguments.has_failed) return std::nullopt;
      ++argument_count;
    } else
      out += format.substr(at, end + 1 - at);
    at = end;
  }
  return out;
}

// Returns null if there is no room, as in CUDA.
Address allocate(Warp& warp, unsigned lane, uint64_t size_bytes) {
  Launch& launch = *warp.cta->launch;
  const Address address = launch.memory->allocate_heap(size_bytes, launch.options.heap_bytes);
  if (address == 0) return 0;
  if (launch.history) launch.history->forget(address - kGlobalBase, size_bytes);
  launch.heap[address] = {warp.cta->turn, warp.pc, warp.index, lane, size_bytes};
  return address;
}

void release(Warp& warp, unsigned lane, Address address) {
  Launch& launch = *warp.cta->launch;
  if (address == 0) return;
  if (launch.memory->heap.contains(address)) {
    launch.heap.erase(address);
    launch.memory->release_heap(address);
    return;
  }
  if (!checks(*warp.cta, kCheckBounds)) return;
  const Object* object = address >= kGlobalBase ? launch.memory->table.find(address - kGlobalBase) : nullptr;
  const bool again = object && !object->live && object->begin == address - kGlobalBase;
  report(warp,
         {.kind = again ? FaultKind::use_after_free : FaultKind::out_of_bounds,
          .message = fmt::format("free of {:#x}, which {}", address, again ? "has been freed" : "malloc has not given"),
          .lane = lane,
          .has_address = true,
          .space = ptx::Space::global,
          .address = address});
}

}  // namespace

void PrintFifo::put(std::string text, uint64_t limit_bytes) {
  if (text.empty()) return;  // the limit does not count it
  size_bytes += text.size();
  calls.push_back(std::move(text));
  for (; size_bytes > limit_bytes; calls.pop_front()) {
    size_bytes -= calls.front().size();
    lost_bytes += calls.front().size();
    ++lost_calls;
  }
}

bool find_builtin(std::string_view name, Builtin& builtin) {
  if (name == "vprintf")
    builtin = Builtin::vprintf;
  else if (name == "__assertfail")
    builtin = Builtin::assert_fail;
  else if (name == "malloc")
    builtin = Builtin::heap_allocate;
  else if (name == "free")
    builtin = Builtin::heap_release;
  else
    return false;
  return true;
}

uint64_t run_builtin(Warp& warp, Builtin builtin, unsigned lane, std::span<const uint64_t> arguments) {
  Launch& launch = *warp.cta->launch;
  const auto argument = [&](size_t i) { return i < arguments.size() ? arguments[i] : 0; };
  if (builtin == Builtin::heap_allocate) return allocate(warp, lane, argument(0));
  if (builtin == Builtin::heap_release) {
    release(warp, lane, argument(0));
    return 0;
  }
  if (builtin == Builtin::vprintf) {
    const auto format = read_text(warp, lane, argument(0));
    if (!format) return 0;
    uint32_t argument_count = 0;  // the result of CUDA's printf
    auto text = formatted(warp, lane, *format, argument(1), argument_count);
    if (!text) return 0;
    std::lock_guard lock(launch.mutex);
    launch.printed.put(std::move(*text), launch.options.print_fifo_bytes);
    return argument_count;
  }
  const auto message = read_text(warp, lane, argument(0));
  const auto function = message ? read_text(warp, lane, argument(3)) : std::nullopt;
  const auto file = function ? read_text(warp, lane, argument(1)) : std::nullopt;
  if (!file) return 0;
  report(warp, {.kind = FaultKind::trap,
                .message = fmt::format("assertion '{}' failed in {}, {}:{}", *message, *function, *file,
                                       static_cast<uint32_t>(argument(2))),
                .lane = lane});
  return 0;
}

}  // namespace ptxkit::emulator
