#include "tools/ptx-debug/lsp/server.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>

#include "analyzer/analyze/identity.hpp"
#include "support/json_depth.hpp"
#include "tools/ptx-debug/lsp/code_actions.hpp"
#include "tools/ptx-debug/lsp/completion.hpp"
#include "tools/ptx-debug/lsp/diagnostics.hpp"
#include "tools/ptx-debug/lsp/hover.hpp"
#include "tools/ptx-debug/lsp/inlay.hpp"
#include "tools/ptx-debug/lsp/navigation.hpp"

namespace ptxkit::lsp {
namespace {

constexpr int kIncrementalSync = 2;

Json error_json(const Json& id, int code, std::string_view message) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", code}, {"message", message}}}};
}

tl::unexpected<Fault> invalid(std::string what) { return tl::unexpected(Fault{kInvalidParams, std::move(what)}); }

// Waits until one of them can be read; -1 stands for none. Returns whether `input` can.
bool wait(int input, int results, int timeout) {
  pollfd waits[] = {{input, POLLIN, 0}, {results, POLLIN, 0}};
  while (::poll(waits, 2, timeout) < 0 && errno == EINTR) continue;
  return waits[0].revents != 0;
}

}  // namespace

Server::Server(int in, int out, report::AnalysisOptions options, double budget_seconds)
    : wire_(in, out),
      value_options_(options.rules),
      budget_seconds_(budget_seconds),
      analyst_(std::move(options), std::chrono::duration<double>(budget_seconds)) {
  value_options_.solver = nullptr;
}

int Server::run() {
  std::string content;
  for (;;) {
    Wire::State state = wire_.take(content);
    for (; state == Wire::State::message; state = wire_.take(content)) {
      handle(content);
      if (exit_code_) return *exit_code_;
    }
    if (state == Wire::State::broken || wire_.has_ended() || is_client_gone_) return 1;
    if (wait(wire_.descriptor(), -1, 0)) {
      wire_.read();
      continue;
    }
    examine_changed();
    const bool has_input = wait(wire_.descriptor(), analyst_.descriptor(), -1);
    for (const Analyzed& analyzed : analyst_.take()) publish(analyzed);
    if (has_input) wire_.read();
  }
}

void Server::send(const Json& message) {
  // A message of the front end may cut a character of the text.
  const std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (!wire_.send(text)) is_client_gone_ = true;
}

void Server::handle(const std::string& content) {
  if (json_depth(content) > kMaxJsonDepth)
    return send(error_json(nullptr, kParseError, fmt::format("JSON nests deeper than {}", kMaxJsonDepth)));
  const Json message = Json::parse(content, nullptr, false);
  if (message.is_discarded()) return send(error_json(nullptr, kParseError, "the message is no JSON"));
  const Json* const id = member(message, "id");
  const auto method = text_at(message, "method");
  const bool has_valid_id = id == nullptr || id->is_string() || id->is_number_integer();
  // A response: this server asks nothing, so it expects none.
  if (!method && id != nullptr && (member(message, "result") != nullptr || member(message, "error") != nullptr)) return;
  if (!method || !has_valid_id || text_at(message, "jsonrpc") != "2.0") {
    return send(error_json(id != nullptr && has_valid_id ? *id : Json(nullptr), kInvalidRequest,
                           "expected a request or a notification of JSON-RPC 2.0"));
  }
  const Json* const found = member(message, "params");
  const Json parameters = found == nullptr ? Json(nullptr) : *found;
  if (id == nullptr) return notified(*method, parameters);
  const Answer result = answer(*method, parameters);
  if (!result) return send(error_json(*id, result.error().code, result.error().message));
  send({{"jsonrpc", "2.0"}, {"id", *id}, {"result", *result}});
}

void Server::notified(const std::string& method, const Json& parameters) {
  if (method == "exit") {
    exit_code_ = is_shut_down_ ? 0 : 1;
    return;
  }
  if (!is_initialized_ || is_shut_down_) return;
  if (method == "textDocument/didOpen") return open(parameters);
  if (method == "textDocument/didChange") return change(parameters);
  if (method == "textDocument/didClose") return close(parameters);
}

Answer Server::answer(const std::string& method, const Json& parameters) {
  if (method == "initialize") return initialize(parameters);
  if (!is_initialized_) return tl::unexpected(Fault{kNotInitialized, "expected 'initialize' first"});
  if (is_shut_down_) return tl::unexpected(Fault{kInvalidRequest, "expected 'exit' after 'shutdown'"});
  if (method == "shutdown") {
    is_shut_down_ = true;
    return Json(nullptr);
  }
  return ask(method, parameters);
}

Answer Server::initialize(const Json& parameters) {
  if (is_initialized_) return tl::unexpected(Fault{kInvalidRequest, "'initialize' was sent before"});
  if (!parameters.is_object()) return invalid("expected an object with 'capabilities'");
  is_initialized_ = true;
  const Json* const encodings = at_path(parameters, "capabilities/general/positionEncodings");
  if (encodings != nullptr && encodings->is_array() && std::ranges::find(*encodings, Json("utf-8")) != encodings->end())
    units_ = CodeUnits::utf8;
  return Json{{"capabilities",
               {{"positionEncoding", units_ == CodeUnits::utf8 ? "utf-8" : "utf-16"},
                {"textDocumentSync", {{"openClose", true}, {"change", kIncrementalSync}}},
                {"hoverProvider", true},
                {"definitionProvider", true},
                {"referencesProvider", true},
                {"documentSymbolProvider", true},
                {"completionProvider", {{"triggerCharacters", {".", "%"}}}},
                {"inlayHintProvider", true},
                {"codeActionProvider", {{"codeActionKinds", {"quickfix"}}}}}},
              {"serverInfo", {{"name", "ptx-debug"}, {"version", report::tool_version()}}}};
}

Answer Server::ask(const std::string& method, const Json& parameters) {
  enum class Needs { document, place, range };
  struct Method {
    std::string_view name;
    Needs needs;
    Json (*answer)(Document&, const Json& parameters, Place, const Range&);
  };
  static constexpr Method kMethods[] = {
      {"textDocument/hover", Needs::place,
       [](Document& document, const Json&, Place place, const Range&) { return hover(document, place); }},
      {"textDocument/definition", Needs::place,
       [](Document& document, const Json&, Place place, const Range&) { return definition(document, place); }},
      {"textDocument/references", Needs::place,
       [](Document& document, const Json& asked, Place place, const Range&) {
         const Json* const with = at_path(asked, "context/includeDeclaration");
         return references(document, place, with != nullptr && *with == true);
       }},
      {"textDocument/completion", Needs::place,
       [](Document& document, const Json&, Place place, const Range&) { return completion(document, place); }},
      {"textDocument/documentSymbol", Needs::document,
       [](Document& document, const Json&, Place, const Range&) { return outline(document); }},
      {"textDocument/inlayHint", Needs::range,
       [](Document& document, const Json&, Place, const Range& range) { return inlay_hints(document, range); }},
      {"textDocument/codeAction", Needs::range,
       [](Document& document, const Json&, Place, const Range& range) { return code_actions(document, range); }},
  };
  const auto* const found = std::ranges::find(kMethods, method, &Method::name);
  if (found == std::end(kMethods))
    return tl::unexpected(Fault{kUnknownMethod, fmt::format("unknown method '{}'", method)});
  const auto uri = text_at(parameters, "textDocument/uri");
  if (!uri) return invalid("expected 'textDocument' with a 'uri'");
  const auto open = documents_.find(*uri);
  if (open == documents_.end()) return invalid(fmt::format("'{}' is not open", *uri));
  const auto place = place_at(parameters, "position");
  if (found->needs == Needs::place && !place) return invalid("expected 'position' with 'line' and 'character'");
  const auto range = range_at(parameters, "range");
  if (found->needs == Needs::range && !range) return invalid("expected 'range' with 'start' and 'end'");
  return found->answer(*open->second.document, parameters, place.value_or(Place{}), range.value_or(Range{}));
}

// A notification has no answer: one with wrong parameters does nothing.
void Server::open(const Json& parameters) {
  auto uri = text_at(parameters, "textDocument/uri"), text = text_at(parameters, "textDocument/text");
  if (!uri || !text) return;
  const Json* const version = at_path(parameters, "textDocument/version");
  const bool has_version = version != nullptr && version->is_number_integer();
  Open& opened = documents_[*uri];
  opened.document =
      std::make_unique<Document>(*uri, has_version ? std::optional(version->get<int64_t>()) : std::nullopt,
                                 std::move(*text), units_, value_options_);
  opened.revision = ++last_revision_;
  opened.is_changed = true;
}

void Server::change(const Json& parameters) {
  const auto uri = text_at(parameters, "textDocument/uri");
  const Json* const changes = at_path(parameters, "contentChanges");
  const auto found = uri ? documents_.find(*uri) : documents_.end();
  if (found == documents_.end() || changes == nullptr || !changes->is_array()) return;
  Document& document = *found->second.document;
  const Json* const version = at_path(parameters, "textDocument/version");
  const bool has_version = version != nullptr && version->is_number_integer();
  std::string text = document.text();
  for (const Json& each : *changes) {
    const auto added = text_at(each, "text");
    if (!added) return;
    if (member(each, "range") == nullptr) {
      text = *added;
      continue;
    }
    const auto range = range_at(each, "range");
    if (!range) return;
    const Places places(text, units_);
    const size_t begin = places.offset(range->start), end = places.offset(range->end);
    text.replace(begin, end - begin, *added);
  }
  document.change(has_version ? std::optional(version->get<int64_t>()) : std::nullopt, std::move(text));
  found->second.revision = ++last_revision_;
  found->second.is_changed = true;
}

void Server::close(const Json& parameters) {
  const auto uri = text_at(parameters, "textDocument/uri");
  if (!uri || documents_.erase(*uri) == 0) return;
  analyst_.drop(*uri);
  send({{"jsonrpc", "2.0"},
        {"method", "textDocument/publishDiagnostics"},
        {"params", {{"uri", *uri}, {"diagnostics", Json::array()}}}});
}

void Server::examine_changed() {
  for (auto& [uri, open] : documents_) {
    if (!std::exchange(open.is_changed, false)) continue;
    analyst_.submit({uri, open.revision, open.document->text()});
  }
}

void Server::publish(const Analyzed& analyzed) {
  const auto found = documents_.find(analyzed.uri);
  if (found == documents_.end() || found->second.revision != analyzed.revision) return;
  Document& document = *found->second.document;
  document.set_analysis(analyzed.file);
  send({{"jsonrpc", "2.0"},
        {"method", "textDocument/publishDiagnostics"},
        {"params", published(document, analyzed.is_cut ? std::optional(budget_seconds_) : std::nullopt)}});
}

}  // namespace ptxkit::lsp
