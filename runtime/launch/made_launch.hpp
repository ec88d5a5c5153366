// Launches made up to see what a kernel does: `ptx-debug analyze --run` runs them, `ptx-debug run --made N` repeats
// one.
//
// What the launch facts and the kernel's directives say is kept. The rest is chosen to be plausible: several grids and
// blocks of the dimensions that the kernel reads, several scalars, contents and schedules, buffers that grow until the
// kernel stays within them. What was chosen is said.
#pragma once

#include <string>
#include <vector>

#include "runtime/launch/generated_launch.hpp"

namespace ptxkit {

inline constexpr unsigned kMadeLaunches = 7;
inline constexpr uint64_t kMadeSteps = 70'000;  // warp instructions of a launch, where nothing else is asked for
inline constexpr unsigned kZerosLaunch = 3;     // its buffers hold zeros

struct MadeLaunch {
  GeneratedLaunch launch;
  bool is_sized = true;                  // the run stays within its buffers; otherwise it may get from one into another
  bool is_shape_given = false;           // the facts or the kernel leave no choice of grid and block
  std::vector<std::string> assumptions;  // what was chosen, each a phrase
};

// Launch `number`, below kMadeLaunches, for a run of `max_steps` warp instructions: buffers grow in runs of as many.
// The same arguments give the same launch. Launches 0 and 1 differ in the contents of buffers alone, and in the
// schedule. `facts` may be null. Errors: those of generate_launch().
Result<MadeLaunch> make_launch(const ptx::Module& module, const ptx::Function& kernel, const flow::LaunchFacts* facts,
                               unsigned number, uint64_t max_steps = kMadeSteps);

// The schedule that goes with launch `number`.
struct MadeSchedule {
  uint64_t seed = 0;
  bool is_adversarial = false;
  std::string word;  // for `run --schedule`
};
MadeSchedule made_schedule(unsigned number);

}  // namespace ptxkit
