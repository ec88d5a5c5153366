// Runs that show a cursor of bytes misaligned: a turn of its loop, or two threads that cannot both be aligned.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/ptx/facts.hpp"

namespace ptxkit::rules {

struct Analyses;

// A turn of the loop around an access in which thread (0, 0, 0) accesses an address that is no multiple of the width.
struct MisalignedIteration {
  uint64_t iteration = 0;
  uint64_t offset = 0;          // of the address, from its base
  std::optional<uint8_t> byte;  // what every loaded byte is, where the run hangs on that
  bool assumed_branch = false;  // a branch that the text does not decide was taken as the run needed it
};

// Runs the kernel's own instructions until `access` is misaligned. With `may_assume_data` every loaded byte is 1, then
// 2, and so on. Nothing where that is not within a few hundred blocks, or hangs on what the text does not say.
std::optional<MisalignedIteration> find_misaligned_iteration(Analyses& analyses, const ptx::Access& access,
                                                             bool may_assume_data);

// Two threads of which at least one is misaligned, whatever the parts that both have in common are.
struct MisalignedPair {
  uint32_t first = 0, second = 0;  // %tid in one dimension; 0 in the others
};

// Whether `parts`, summed up for an access in `block`, differ by no multiple of `width_bytes` between the first thread
// of a row and one of a few others of it; false where that is not known. Says at little cost that a search for a pair
// is vain.
bool differs_in_row(Analyses& analyses, std::span<const flow::Term> parts, uint32_t width_bytes, unsigned dimension,
                    flow::BlockId block);

// Of threads that differ in one dimension, 0 to 2. Nothing where a part differs between them in a way that the text
// does not tell, or where a test on the way may keep one of the two out.
std::optional<MisalignedPair> find_misaligned_pair(Analyses& analyses, const ptx::Access& access,
                                                   std::span<const flow::Term> parts, unsigned dimension);

}  // namespace ptxkit::rules
