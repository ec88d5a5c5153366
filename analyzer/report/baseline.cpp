// See baseline.hpp.
#include "analyzer/report/baseline.hpp"

#include <set>
#include <string>

#include <fmt/format.h>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/analyze/fingerprint.hpp"
#include "analyzer/analyze/suppression.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/table.hpp"
#include "support/json.hpp"
#include "support/printable.hpp"

namespace ptxkit::report {

namespace {

class BaselineDocument : public Document {
 public:
  std::string begin() override { return fmt::format("{{\"schema\": \"{}\", \"findings\": [", kBaselineSchema); }

  std::string add(const FileAnalysis& file) override {
    std::string out;
    for (const KernelAnalysis& kernel : file.kernels) {
      for (const RuleVerdict& verdict : kernel.verdicts) {
        for (const AnyFinding& each : all_findings(file.parsed.module, kernel, verdict)) {
          const bool is_by_comment = each.suppressed && each.suppressed->by == Suppressed::By::comment;
          if (is_by_comment || each.finding->severity == rules::Severity::info) continue;
          const bool is_first = written_.empty();
          if (!written_.insert(each.fingerprint).second) continue;
          const OrderedJson json = {{"fingerprint", each.fingerprint},
                                    {"rule", verdict.rule->id},
                                    {"kernel", kernel.name},
                                    {"severity", text(each.finding->severity)},
                                    {"message", each.finding->message}};
          out += is_first ? "\n" : ",\n";
          out += printable_json(json.dump(2, ' ', false, OrderedJson::error_handler_t::replace));
        }
      }
    }
    return out;
  }

  std::string end(const Totals&) override { return "\n]}\n"; }

 private:
  std::set<std::string> written_;
};

}  // namespace

std::unique_ptr<Document> baseline_document() { return std::make_unique<BaselineDocument>(); }

}  // namespace ptxkit::report
