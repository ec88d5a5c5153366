// Parses PTX for the tests of analyzer/inspect from the text after the header.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "analyzer/ptx/diagnostic.hpp"

namespace ptxkit::inspect {

inline ptx::ParseResult parsed(const std::string& body, const std::string& before_header = {}) {
  ptx::ParseResult result =
      ptx::parse(before_header + ".version 8.0\n.target sm_90\n.address_size 64\n" + body, "test.ptx");
  for (const ptx::Diagnostic& diagnostic : result.diagnostics) ADD_FAILURE() << render(result.module, diagnostic);
  return result;
}

}  // namespace ptxkit::inspect
