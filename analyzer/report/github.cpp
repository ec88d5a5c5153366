// GitHub's workflow commands escape '%', CR, LF, ':' and ',' in properties, and the first three in messages. The texts
// contain no CR. A path with unsafe characters is changed and does not match its file; its findings are still printed.
#include "analyzer/report/github.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/analyze/place.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/score.hpp"
#include "support/printable.hpp"

namespace ptxkit::report {
namespace {

using rules::Finding;
using rules::Severity;

std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    out += special.find(c) == special.npos ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string property(std::string_view text) { return escaped(without_commands(printable(text)), "%:,"); }

std::string message_text(std::string_view text) { return escaped(without_commands(printable_lines(text)), "%\n"); }

std::string_view command_of(Severity severity) {
  if (severity >= Severity::high) return "error";
  return severity == Severity::medium ? "warning" : "notice";
}

std::string annotation(const FileAnalysis& file, const rules::RuleInfo& rule, const Finding& finding,
                       const SourceLine& source_line) {
  const ptx::Module& module = file.parsed.module;
  const ptx::Position position = module.position(finding.at);
  SourcePlace place{file.path, position.line, position.column};
  for (const SourcePlace& source : source_places(module, finding.location)) {
    if (!source_line || !source_line(file.path, source.file, source.line)) continue;
    place = source;
    break;
  }
  std::string message = finding.message;
  if (place.file != file.path) message += fmt::format(" ({}:{})", file.path, position.line);
  if (!finding.remedy.empty()) message += "; " + finding.remedy;
  return fmt::format("::{} file={},line={},col={},title={}::{}\n", command_of(finding.severity), property(place.file),
                     place.line, std::max(place.column, 1u), property(fmt::format("{} {}", rule.id, rule.name)),
                     message_text(message));
}

class AnnotationDocument : public Document {
 public:
  explicit AnnotationDocument(SourceLine source_line) : source_line_(std::move(source_line)) {}

  std::string add(const FileAnalysis& file) override {
    if (file.error) return fmt::format("::error::{}\n", message_text(file.error->message()));
    std::string out;
    for (const std::string& remark : file.remarks) out += fmt::format("::notice::{}\n", message_text(remark));
    for (const KernelAnalysis& kernel : file.kernels) {
      for (const RuleVerdict& verdict : kernel.verdicts) {
        for (const Finding& finding : verdict.result.findings) {
          if (finding.severity != Severity::info) out += annotation(file, *verdict.rule, finding, source_line_);
        }
      }
    }
    if (!file.is_last_part) return out;
    const std::string path = without_commands(printable_path(file.path));
    const std::string outcome = !file.parsed.diagnostics.empty() ? "does not parse"
                                : file.score                     ? fmt::format("score {:.1f}", file.score->percent())
                                                                 : "no kernel examined";
    return out + fmt::format("{}: {} (exit {})\n", path, outcome, rules::exit_code(file.status));
  }

 private:
  const SourceLine source_line_;
};

}  // namespace

std::unique_ptr<Document> annotation_document(SourceLine source_line) {
  return std::make_unique<AnnotationDocument>(std::move(source_line));
}

}  // namespace ptxkit::report
