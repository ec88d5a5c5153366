// The messages of the front end: one located message per mistake. diagnostics.def lists all kinds; each has a test that
// triggers it.
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

std::string_view text(DiagnosticKind kind);  // such as "unknown_opcode"
std::string_view rule(DiagnosticKind kind);  // rule of the catalogue that reports it, such as "F007"

struct Diagnostic {
  DiagnosticKind kind;
  Offset at = 0, end = 0;
  std::string message;  // lower case, no final period: "expected ';' after 'ret', found '}'"
  FunctionId function = kNone;
};

struct ParseResult {
  Module module;                        // everything that could be parsed; always usable
  std::vector<Diagnostic> diagnostics;  // sorted by position; empty if ptxas would accept the text
};

// Parses and validates arbitrary bytes. Never throws and never crashes. `path` is used in messages only.
ParseResult parse(std::string text, std::string path);

// The message "file.ptx:12:3: error: ...", the line, and a caret.
std::string render(const Module& module, const Diagnostic& diagnostic);

}  // namespace ptxkit::ptx
