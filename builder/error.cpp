// Places in diagnostics, as paths from the project's root: -fmacro-prefix-map takes it off an absolute path. ccache
// makes paths relative to the build folder before the compiler sees them.
#include "builder/error.hpp"

#include <string_view>

namespace ptxkit::dsl {

std::string relative_path(const char* file_name) {
  std::string_view path(file_name);
  while (path.starts_with("../") || path.starts_with("./")) path.remove_prefix(path.find('/') + 1);
  return std::string(path);
}

std::string place(Where where) { return relative_path(where.file_name()) + ":" + std::to_string(where.line()); }

DslError::DslError(const std::string& what, Where where, const std::string& other_what, Where other,
                   const std::string& remedy)
    : std::runtime_error(place(where) + ": " + what + "\n  " + place(other) + ": " + other_what +
                         "\n  remedy: " + remedy),
      where_(where),
      other_(other) {}

DslError::DslError(const std::string& what, Where where, const std::string& remedy)
    : std::runtime_error(place(where) + ": " + what + "\n  remedy: " + remedy), where_(where), other_(where) {}

const char* name_of(Scalar scalar) {
  constexpr const char* names[] = {"pred", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "f64"};
  return names[static_cast<unsigned>(scalar)];
}

}  // namespace ptxkit::dsl
