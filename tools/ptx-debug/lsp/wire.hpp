// Messages of the Language Server Protocol on two descriptors: "Content-Length: N", an empty line, N bytes of JSON.
// LSP 3.17, "Base Protocol".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ptxkit::lsp {

inline constexpr size_t kMaxHeaderBytes = 4096;
inline constexpr size_t kMaxMessageBytes = size_t{64} << 20;

class Wire {
 public:
  Wire(int in, int out) : in_(in), out_(out) {}

  // `broken`: what was read is no header, or announces more than kMaxMessageBytes; nothing can be read after it.
  enum class State : uint8_t { message, incomplete, broken };
  // Moves the next message that has arrived as a whole to `content`.
  State take(std::string& content);
  const std::string& fault() const { return fault_; }  // why it is broken

  // Reads once; waits if nothing has arrived. At the end of the input it sets has_ended().
  void read();
  bool has_ended() const { return has_ended_; }
  int descriptor() const { return in_; }

  // Returns false if the reader is gone.
  bool send(std::string_view content);

 private:
  State refuse(std::string what);

  int in_, out_;
  bool has_ended_ = false;
  std::string buffer_, fault_;
  size_t at_ = 0;  // of the first byte of buffer_ that was not taken
};

}  // namespace ptxkit::lsp
