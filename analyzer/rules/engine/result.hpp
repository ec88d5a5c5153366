// Constructors for findings and results, which keep wording and ranking consistent.
#pragma once

#include <string>
#include <vector>

#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::rules {

Finding finding_at(const Context& context, ptx::InstructionId id, Severity severity, Tier tier, std::string message,
                   std::string remedy = {});

RuleResult not_applicable(std::string basis);
RuleResult survived(std::string basis);
RuleResult undecided(std::string basis);

// The verdict that follows from the findings: refuted if one above info is proved or likely, undecided if all are
// possible, survived with `basis` if there are none or all are info.
RuleResult conclude(std::vector<Finding> findings, std::string basis);

// For advice that good code often ignores. The rule is refuted if there are findings; all of them are info, and no
// points are lost.
RuleResult advise(std::vector<Finding> findings, std::string survived_basis, std::string refuted_basis);

// Sorts by instruction, and keeps the order of findings at one instruction.
void in_program_order(std::vector<Finding>& findings);

// Keeps the first of the findings that one line of the source gives: those with its `.loc`, severity, tier and remedy.
// The path of the one kept names the places of the others. For findings in program order.
void merge_by_source(const Context& context, std::vector<Finding>& findings);

// Maps findings from instructions to places in the text. Each finding gets its source location. A finding in an inlined
// function gets the chain of calls as the beginning of its path. A place in such a function is reported once, for the
// first chain.
void place_findings(const Context& context, RuleResult& result);

// 1-based line of an instruction.
uint32_t line_of(const Context& context, ptx::InstructionId id);

}  // namespace ptxkit::rules
