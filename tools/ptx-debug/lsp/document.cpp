#include "tools/ptx-debug/lsp/document.hpp"

namespace ptxkit::lsp {

void Document::change(std::optional<int64_t> version, std::string text) {
  values_.reset();
  names_.reset();
  parsed_.reset();
  analysis_.reset();
  version_ = version;
  text_ = std::move(text);
  places_.emplace(text_, units_);
}

const ptx::ParseResult& Document::parsed() {
  if (!parsed_) parsed_ = std::make_unique<ptx::ParseResult>(ptx::parse(text_, ""));
  return *parsed_;
}

const Names& Document::names() {
  if (!names_) names_ = std::make_unique<Names>(module());
  return *names_;
}

Values& Document::values() {
  if (!values_) values_ = std::make_unique<Values>(parsed(), *options_);
  return *values_;
}

}  // namespace ptxkit::lsp
