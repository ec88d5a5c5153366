// The language server of `ptx-debug lsp`: LSP 3.17 for PTX on two descriptors.
//
// The texts are in the messages; the server opens no file. It reads all messages that have arrived before it gives a
// text to the rules, so that of many changes in a row only the newest text is examined.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "analyzer/analyze/analysis.hpp"
#include "tools/ptx-debug/lsp/analyst.hpp"
#include "tools/ptx-debug/lsp/answers.hpp"
#include "tools/ptx-debug/lsp/document.hpp"
#include "tools/ptx-debug/lsp/wire.hpp"

namespace ptxkit::lsp {

// `options.rules` refers to what must outlive the server. `budget_seconds` bounds the rules on one text.
class Server {
 public:
  Server(int in, int out, report::AnalysisOptions options, double budget_seconds);

  // Answers until the client says `exit` or its end of the input is closed. Returns 0 after `shutdown` and `exit`, else
  // 1.
  int run();
  const std::string& fault() const { return wire_.fault(); }  // why the input could not be read on; empty: it could
  bool is_busy() { return analyst_.is_busy(); }               // whether a rule still runs

 private:
  struct Open {
    std::unique_ptr<Document> document;
    uint64_t revision = 0;
    bool is_changed = false;  // since the last text that the rules were given
  };

  void handle(const std::string& content);
  void notified(const std::string& method, const Json& parameters);
  Answer answer(const std::string& method, const Json& parameters);
  Answer initialize(const Json& parameters);
  Answer ask(const std::string& method, const Json& parameters);
  void open(const Json& parameters);
  void change(const Json& parameters);
  void close(const Json& parameters);
  void examine_changed();
  void publish(const Analyzed& analyzed);
  void send(const Json& message);

  Wire wire_;
  rules::Options value_options_;  // of what requests ask: without a solver, which takes long
  double budget_seconds_;
  Analyst analyst_;
  std::map<std::string, Open, std::less<>> documents_;
  uint64_t last_revision_ = 0;
  CodeUnits units_ = CodeUnits::utf16;
  bool is_initialized_ = false, is_shut_down_ = false, is_client_gone_ = false;
  std::optional<int> exit_code_;
};

}  // namespace ptxkit::lsp
