// See argument_spec.hpp.
#include "tools/ptx-debug/argument_spec.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "support/file.hpp"
#include "support/hex.hpp"

namespace ptxkit::tools {
namespace {

constexpr uint64_t kMaxBufferBytes = uint64_t{1} << 32;

std::vector<std::byte> low_bytes(uint64_t value, size_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  std::memcpy(bytes.data(), &value, size_bytes);
  return bytes;
}

template <class T>
bool parse_whole(std::string_view text, T& value, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// Decimal, or hexadecimal after 0x.
bool parse_unsigned(std::string_view text, uint64_t& value) {
  if (text.starts_with("0x") || text.starts_with("0X")) return parse_whole(text.substr(2), value, 16);
  return parse_whole(text, value, 10);
}

Result<ArgumentSpec> integer(std::string_view spec, char kind, unsigned bits, std::string_view text) {
  const auto out_of_range = [&] {
    return fail(fmt::format("'{}': expected {} number of {} bits, found '{}'", spec,
                            kind == 'b'   ? "a hexadecimal"
                            : kind == 's' ? "a signed"
                                          : "an unsigned",
                            bits, text));
  };
  ArgumentSpec argument;
  uint64_t value = 0;
  if (kind == 's') {
    int64_t number = 0;
    if (!parse_whole(text, number, 10)) return out_of_range();
    if (bits < 64 && (number >= int64_t{1} << (bits - 1) || number < -(int64_t{1} << (bits - 1))))
      return out_of_range();
    value = static_cast<uint64_t>(number);
  } else {
    const bool read = kind == 'b' ? parse_whole(text.starts_with("0x") ? text.substr(2) : text, value, 16)
                                  : parse_unsigned(text, value);
    if (!read || (bits < 64 && value >> bits)) return out_of_range();
  }
  argument.bytes = low_bytes(value, bits / 8);
  return argument;
}

template <class T>
Result<ArgumentSpec> floating(std::string_view spec, std::string_view text) {
  T number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return fail(fmt::format("'{}': expected a number, found '{}'", spec, text));
  const auto view = std::as_bytes(std::span<const T, 1>(&number, 1));
  ArgumentSpec argument;
  argument.bytes = {view.begin(), view.end()};
  return argument;
}

Result<std::vector<std::byte>> file_bytes(std::string_view path) {
  auto text = read_file(std::string(path));
  if (!text) return tl::unexpected(text.error());
  const auto view = std::as_bytes(std::span(*text));
  return std::vector<std::byte>(view.begin(), view.end());
}

Result<std::vector<std::byte>> hex_bytes(std::string_view spec, std::string_view text) {
  if (auto bytes = bytes_of_hex(text)) return std::move(*bytes);
  return fail(fmt::format("'{}': expected pairs of hexadecimal digits, found '{}'", spec, text));
}

Result<ArgumentSpec> buffer(std::string_view spec, std::string_view kind, std::string_view rest) {
  ArgumentSpec argument;
  argument.is_buffer = true;
  const size_t colon = kind == "inout" ? rest.rfind(':') : rest.find(':');
  const bool has_output = kind == "inout" || kind == "out" || kind == "mapped" || kind == "uninit";
  std::string_view first = rest;
  if (has_output) {
    if (colon == std::string_view::npos || colon + 1 == rest.size())
      return fail(fmt::format("'{}': expected {}:{}:OUT", spec, kind, kind == "inout" ? "FILE" : "BYTES"));
    first = rest.substr(0, colon);
    argument.output = std::string(rest.substr(colon + 1));
  }
  if (kind == "in" || kind == "inout") {
    auto bytes = file_bytes(first);
    if (!bytes) return tl::unexpected(bytes.error());
    argument.bytes = std::move(*bytes);
    return argument;
  }
  if (kind == "hex") {
    auto bytes = hex_bytes(spec, first);
    if (!bytes) return tl::unexpected(bytes.error());
    argument.bytes = std::move(*bytes);
    return argument;
  }
  uint64_t size_bytes = 0;
  if (!parse_unsigned(first, size_bytes) || size_bytes > kMaxBufferBytes)
    return fail(fmt::format("'{}': expected a size in bytes up to {}, found '{}'", spec, kMaxBufferBytes, first));
  argument.initialised = kind != "uninit";
  argument.mapped = kind == "mapped";
  argument.bytes.resize(size_bytes);
  return argument;
}

// tex:LIST:FILE, surf:LIST:FILE:OUT, sampler:LIST, tensor:LIST:FILE, tensor:LIST:FILE:OUT
Result<ArgumentSpec> object(std::string_view spec, std::string_view kind, std::string_view rest) {
  ArgumentSpec argument;
  argument.is_buffer = kind != "sampler";
  const size_t list_end = argument.is_buffer ? rest.find(':') : rest.size();
  const std::string_view list = rest.substr(0, list_end);
  std::string_view file = list_end < rest.size() ? rest.substr(list_end + 1) : std::string_view();
  const size_t colon = kind == "surf" ? file.rfind(':') : kind == "tensor" ? file.find(':') : file.npos;
  const bool lacks_output = kind == "surf" && (colon == file.npos || colon + 1 == file.size());
  if (argument.is_buffer && (file.empty() || lacks_output))
    return fail(fmt::format("'{}': expected {}", spec,
                            kind == "tex"    ? "tex:LIST:FILE"
                            : kind == "surf" ? "surf:LIST:FILE:OUT"
                                             : "tensor:LIST:FILE or tensor:LIST:FILE:OUT"));
  auto parsed = parse_object_spec(fmt::format("{}:{}", kind, list));
  if (!parsed) return tl::unexpected(parsed.error());
  argument.object = *parsed;
  if (!argument.is_buffer) return argument;
  if (colon != file.npos) {
    argument.output = std::string(file.substr(colon + 1));
    file = file.substr(0, colon);
  }
  auto bytes = file_bytes(file);
  if (!bytes) return tl::unexpected(bytes.error());
  if (bytes->size() != parsed->size_bytes())
    return fail(fmt::format("'{}': {} {} bytes, the file {}", spec,
                            kind == "tensor" ? "the tensor has" : "the texels are", parsed->size_bytes(),
                            bytes->size()));
  argument.bytes = std::move(*bytes);
  return argument;
}

// struct:SPEC,SPEC,...
Result<ArgumentSpec> structure(std::string_view spec, std::string_view rest) {
  ArgumentSpec argument;
  for (size_t begin = 0; begin <= rest.size();) {
    const size_t end = std::min(rest.find(',', begin), rest.size());
    auto member = parse_argument_spec(rest.substr(begin, end - begin));
    if (!member) return member;
    if (member->object || !member->members.empty())
      return fail(fmt::format("'{}': a struct has scalars, bytes and buffers, found '{}'", spec,
                              rest.substr(begin, end - begin)));
    argument.members.push_back(std::move(*member));
    begin = end + 1;
  }
  return argument;
}

}  // namespace

Result<std::vector<std::byte>> argument_bytes(
    const ArgumentSpec& argument, const std::function<Result<std::vector<std::byte>>(const ArgumentSpec&)>& value_of) {
  if (argument.members.empty()) return value_of(argument);
  std::vector<std::byte> bytes;
  size_t largest = 1;
  const auto pad_to = [&](size_t alignment) { bytes.resize((bytes.size() + alignment - 1) / alignment * alignment); };
  for (const ArgumentSpec& member : argument.members) {
    const auto value = value_of(member);
    if (!value) return value;
    const size_t alignment = member.is_packed ? 1 : value->size();
    pad_to(alignment);
    bytes.insert(bytes.end(), value->begin(), value->end());
    largest = std::max(largest, alignment);
  }
  pad_to(largest);
  return bytes;
}

Result<ArgumentSpec> parse_argument_spec(std::string_view spec) {
  const size_t colon = spec.find(':');
  if (colon != std::string_view::npos) {
    const std::string_view kind = spec.substr(0, colon), rest = spec.substr(colon + 1);
    for (const std::string_view each : {"in", "inout", "out", "mapped", "uninit", "zero", "hex"}) {
      if (kind == each) return buffer(spec, kind, rest);
    }
    for (const std::string_view each : {"tex", "surf", "sampler", "tensor"}) {
      if (kind == each) return object(spec, kind, rest);
    }
    if (kind == "struct") return structure(spec, rest);
    if (kind == "bytes") {
      ArgumentSpec argument;
      argument.is_packed = true;
      auto bytes = hex_bytes(spec, rest);
      if (!bytes) return tl::unexpected(bytes.error());
      argument.bytes = std::move(*bytes);
      return argument;
    }
    if (kind == "f32") return floating<float>(spec, rest);
    if (kind == "f64") return floating<double>(spec, rest);
    unsigned bits = 0;
    if (kind.size() >= 2 && (kind[0] == 'u' || kind[0] == 's' || kind[0] == 'b') &&
        parse_whole(kind.substr(1), bits, 10) && (bits == 8 || bits == 16 || bits == 32 || bits == 64)) {
      return integer(spec, kind[0], bits, rest);
    }
  }
  return fail(
      fmt::format("'{}' is not an argument", spec), "",
      "give u32:5, s64:-1, f32:1.5, b8:ff and so on, or in:FILE, inout:FILE:OUT, out:BYTES:OUT, mapped:BYTES:OUT, "
      "uninit:BYTES:OUT, zero:BYTES, hex:00ff, bytes:00ff, struct:SPEC,SPEC..., tex:LIST:FILE, surf:LIST:FILE:OUT, "
      "sampler:LIST, tensor:LIST:FILE");
}

}  // namespace ptxkit::tools
