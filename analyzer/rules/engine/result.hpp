// Small constructors for findings and results, so that every rule words and ranks them alike.
#pragma once

#include <string>

#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::rules {

Finding finding_at(const Context& context, ptx::InstructionId id, Severity severity, Tier tier, std::string message,
                   std::string remedy = {});

RuleResult not_applicable(std::string basis);
RuleResult survived(std::string basis);
RuleResult undecided(std::string basis);

// The verdict that the findings add up to: refuted where one is proved or likely and above info, undecided where all
// are possible, survived with `basis` where there are none or all are info.
RuleResult conclude(std::vector<Finding> findings, std::string basis);

// For rules that good code breaks too often to be charged for: refuted where there are findings, which are all info,
// and no points are lost.
RuleResult advise(std::vector<Finding> findings, std::string survived_basis, std::string refuted_basis);

// By instruction; of one instruction, in the order in which they were found.
void in_program_order(std::vector<Finding>& findings);

// Findings about instructions, as findings in the text: each gets its source location, and one in a function that was
// called gets the calls by which control comes there as the beginning of its path. One place in such a function is
// reported once, for the first way to it.
void place_findings(const Context& context, RuleResult& result);

// 1-based line of an instruction.
uint32_t line_of(const Context& context, ptx::InstructionId id);

}  // namespace ptxkit::rules
