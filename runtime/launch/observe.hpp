// Runs a kernel on the emulator to see its faults: the half of `ptx-debug analyze` that executes.
//
// The launches are those of make_launch(). A fault that each launch shows that comes to its place, whatever was made
// up, is a finding with its rule's severity, tier `observed`. A fault that some of them show is at most medium and
// `likely` where the launch facts give grid and block, and a note, `possible`, where these are made up as well. Left
// out is what the generated memory alone explains: an access past the end of a buffer whose size was made up, textures
// that do not exist, limits of the run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/flow/launch.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit {

struct ObservedFinding {
  std::string rule;
  bool is_certain = false;  // each launch that comes to its place shows it
  rules::Finding finding;   // `command` has the options of `run` that choose the launch: "--made 0 ..."
};

struct Observations {
  rules::ObservedRun run;
  std::vector<ObservedFinding> findings;  // in the order in which they were first seen
  uint64_t steps = 0;                     // warp instructions executed
};

// Executes at most about `max_steps` warp instructions, which are shared by the launches. `facts` may be null. The same
// arguments give the same result on every machine.
Observations observe(const ptx::Module& module, ptx::FunctionId kernel, const flow::LaunchFacts* facts,
                     uint64_t max_steps);

}  // namespace ptxkit
