// Threads where the system has them. A limit (RLIMIT_NPROC, RLIMIT_AS, a container's pids) may leave none, which the
// caller answers by doing the work itself or with fewer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

namespace ptxkit {

// A thread that runs `work`, or nothing where there is none to be had, or where its stack would take more than a
// quarter of the address space that is left: the work needs memory, too. It takes no signal: those that are sent to the
// process are for the threads that the program itself started.
std::optional<std::thread> try_thread(std::function<void()> work) noexcept;

// Bytes that RLIMIT_AS leaves to this process; nothing where there is no such limit.
std::optional<uint64_t> address_space_left() noexcept;

// What the stack of a thread takes.
uint64_t stack_bytes() noexcept;

}  // namespace ptxkit
