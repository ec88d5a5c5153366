// What the front end says of a text: one located message per mistake. Kinds are listed once, in diagnostics.def;
// each has a test that triggers it.
#pragma once

#include <string>
#include <vector>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::ptx {

enum class DiagnosticKind : uint16_t {
#define PTX_DIAGNOSTIC(id, rule) id,
#include "analyzer/ptx/diagnostics.def"
#undef PTX_DIAGNOSTIC
};

std::string_view text(DiagnosticKind kind);  // "unknown_opcode"
std::string_view rule(DiagnosticKind kind);  // "F007": the rule of the catalogue that reports it

struct Diagnostic {
  DiagnosticKind kind;
  Offset at = 0, end = 0;
  std::string message;  // lower case, no final period: "expected ';' after 'ret', found '}'"
  FunctionId function = kNone;
};

struct ParseResult {
  Module module;                        // as much as could be read, always usable
  std::vector<Diagnostic> diagnostics;  // by position; empty when ptxas would accept the text
};

// Parses and validates. Never throws, never crashes, whatever the bytes. `path` is only for messages.
ParseResult parse(std::string text, std::string path);

// "file.ptx:12:3: error: ...", the line and a caret.
std::string render(const Module& module, const Diagnostic& diagnostic);

}  // namespace ptxkit::ptx
