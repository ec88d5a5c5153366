// Options of a function as a JSON object: every name and every type is checked, nothing is ignored.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/c_api/status.hpp"

namespace ptxkit::c_api {

class JsonOptions {
 public:
  // `text`: null, or an object with no other names than `names`.
  static Answer<JsonOptions> read(const char* text, std::initializer_list<std::string_view> names);
  JsonOptions(JsonOptions&&) noexcept;
  ~JsonOptions();

  bool has(std::string_view name) const;
  // The value, or `otherwise` where the object does not have it. Errors name the option and the expected type.
  Answer<std::string> string(std::string_view name, std::string otherwise) const;
  Answer<bool> boolean(std::string_view name, bool otherwise) const;
  Answer<uint64_t> number(std::string_view name, uint64_t otherwise, uint64_t most) const;
  Answer<double> real(std::string_view name, double least, double most) const;  // the object has it
  Answer<std::vector<std::string>> strings(std::string_view name) const;
  // The text of an object, "" where there is none.
  Answer<std::string> object(std::string_view name) const;

 private:
  struct Value;
  explicit JsonOptions(std::unique_ptr<Value> value);
  const void* find(std::string_view name) const;
  std::unique_ptr<Value> value_;
};

}  // namespace ptxkit::c_api
