// An open text with what was made of it. Tree, names and values are made when first asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "tools/ptx-debug/lsp/names.hpp"
#include "tools/ptx-debug/lsp/places.hpp"
#include "tools/ptx-debug/lsp/values.hpp"

namespace ptxkit::lsp {

class Document {
 public:
  // `options` must outlive it.
  Document(std::string uri, std::optional<int64_t> version, std::string text, CodeUnits units,
           const rules::Options& options)
      : uri_(std::move(uri)), units_(units), options_(&options) {
    change(version, std::move(text));
  }

  const std::string& uri() const { return uri_; }
  std::optional<int64_t> version() const { return version_; }  // of the client, if it counts them
  const std::string& text() const { return text_; }
  const Places& places() const { return *places_; }

  void change(std::optional<int64_t> version, std::string text);
  const ptx::ParseResult& parsed();
  const ptx::Module& module() { return parsed().module; }
  const Names& names();
  Values& values();
  // Of this text; null until the rules have run.
  const report::FileAnalysis* analysis() const { return analysis_.get(); }
  void set_analysis(std::shared_ptr<const report::FileAnalysis> analysis) { analysis_ = std::move(analysis); }

 private:
  std::string uri_;
  CodeUnits units_;
  const rules::Options* options_;
  std::optional<int64_t> version_;
  std::string text_;
  std::optional<Places> places_;
  std::unique_ptr<ptx::ParseResult> parsed_;
  std::unique_ptr<Names> names_;
  std::unique_ptr<Values> values_;
  std::shared_ptr<const report::FileAnalysis> analysis_;
};

}  // namespace ptxkit::lsp
