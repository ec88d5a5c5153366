// A hand-made report in which every field of a finding is set, independent of the rules.
#pragma once

#include <string>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/rules/table.hpp"

namespace ptxkit::report {

inline constexpr const char* kSampleText =
    ".version 8.0\n"
    ".target sm_75\n"
    ".address_size 64\n"
    ".file 1 \"lz4.cpp\"\n"
    ".visible .entry compress()\n"
    "{\n"
    "    .reg .b32 %at, %value;\n"
    "    .shared .align 16 .b8 buffer[64];\n"
    "    .loc 1 42 7\n"
    "    mov.u32 %at, buffer;\n"
    "\tld.shared.u32 %value, [%at+1]; // cafe\n"
    "    ret;\n"
    "}\n";

inline ptx::Offset sample_offset(std::string_view what) {
  return static_cast<ptx::Offset>(std::string_view(kSampleText).find(what));
}

// One kernel with a critical finding that sets every field, an info finding, an undecided rule and a survived rule.
inline FileAnalysis sample_file() {
  using namespace rules;
  FileAnalysis file;
  file.path = "lz4.ptx";
  file.xxh128 = "00112233445566778899aabbccddeeff";
  file.parsed = ptx::parse(kSampleText, file.path);
  KernelAnalysis kernel;
  kernel.name = "compress";
  kernel.function = 0;
  Finding misaligned;
  misaligned.severity = Severity::critical;
  misaligned.tier = Tier::proved;
  misaligned.instruction = 1;
  misaligned.location = file.parsed.module.functions[0].instructions[1].location;
  misaligned.at = sample_offset("ld.shared");
  misaligned.message = "4-byte load at an address that is 1 modulo 4";
  misaligned.path = {{sample_offset("mov.u32"), "the address begins here"}};
  misaligned.assumptions = {"first assumption", "second assumption"};
  misaligned.witness = Witness{};
  misaligned.witness->tid[0] = 5;
  misaligned.witness->other_tid[0] = 6;
  misaligned.witness->iteration = 3;
  misaligned.witness->address = 9;
  misaligned.witness->note = "of buffer";
  misaligned.remedy = "load bytes";
  misaligned.evidence = "h200-r580: something";
  Finding note;
  note.severity = Severity::info;
  note.at = sample_offset("mov.u32");
  note.message = "an aligned site";
  kernel.verdicts.push_back(
      {find_rule("F001"), {.verdict = Verdict::survived, .loses_points = false, .basis = "", .findings = {}}});
  kernel.verdicts.push_back({find_rule("F036"),
                             {.verdict = Verdict::undecided,
                              .loses_points = false,
                              .basis = "the size of the CTA is unknown",
                              .findings = {}}});
  kernel.verdicts.push_back({find_rule("F051"),
                             {.verdict = Verdict::refuted,
                              .loses_points = true,
                              .basis = "one access is misaligned",
                              .findings = {misaligned}}});
  kernel.verdicts.push_back(
      {find_rule("F054"), {.verdict = Verdict::not_applicable, .loses_points = false, .basis = "", .findings = {}}});
  kernel.verdicts.push_back(
      {find_rule("F081"), {.verdict = Verdict::survived, .loses_points = false, .basis = "", .findings = {note}}});
  for (const RuleVerdict& verdict : kernel.verdicts) kernel.score.add(*verdict.rule, verdict.result);
  file.score = kernel.score;
  file.status = Status::critical;
  file.kernels.push_back(std::move(kernel));
  return file;
}

}  // namespace ptxkit::report
