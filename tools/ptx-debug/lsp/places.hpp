// Lines and columns as a client counts them, and offsets in bytes. LSP 3.17, "Text Documents" and "Position".
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ptxkit::lsp {

// What the client counts within a line.
enum class CodeUnits : uint8_t { utf16, utf8 };

// Both from 0.
struct Place {
  uint32_t line = 0, character = 0;
  auto operator<=>(const Place&) const = default;
};

// The lines of a text, which must outlive it.
class Places {
 public:
  Places(std::string_view text, CodeUnits units);

  // A character beyond its line is the end of the line, a line beyond the text its end.
  size_t offset(Place place) const;
  Place place(size_t offset) const;
  size_t line_begin(uint32_t line) const { return line < starts_.size() ? starts_[line] : text_.size(); }
  size_t line_end(uint32_t line) const;  // before its line end
  uint32_t line_of(size_t offset) const;

 private:
  std::string_view text_;
  CodeUnits units_;
  std::vector<size_t> starts_;
};

}  // namespace ptxkit::lsp
