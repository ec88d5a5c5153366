// Kernel structures and numbers are defined here where headers of older distributions lack them. The seccomp filter
// lists the calls that are refused, not those that are allowed, because other versions of an allocator or a thread
// library may make any harmless call.
#include "support/sandbox.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ptxkit {
namespace {

namespace landlock {

// linux/landlock.h, whole since Linux 6.12. The numbers of the calls are the same on every architecture.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr uint32_t kCreateRulesetVersion = 1;
constexpr int kPathBeneath = 1;
struct RulesetAttributes {
  uint64_t handled_access_fs;
  uint64_t handled_access_net;  // since version 4
  uint64_t scoped;              // since version 6
};
struct __attribute__((packed)) PathBeneath {
  uint64_t allowed_access;
  int32_t parent_fd;
};
constexpr uint64_t kExecute = 1 << 0, kWriteFile = 1 << 1, kRemoveDirectory = 1 << 4, kRemoveFile = 1 << 5,
                   kMakeDevice = 1 << 6, kMakeDirectory = 1 << 7, kMakeRegular = 1 << 8, kMakeSocket = 1 << 9,
                   kMakeFifo = 1 << 10, kMakeBlock = 1 << 11, kMakeLink = 1 << 12, kRefer = 1 << 13,
                   kTruncate = 1 << 14;
constexpr uint64_t kBindTcp = 1 << 0, kConnectTcp = 1 << 1;
constexpr uint64_t kAbstractSockets = 1 << 0, kSignals = 1 << 1;

constexpr uint64_t kChanges = kWriteFile | kRemoveDirectory | kRemoveFile | kMakeDevice | kMakeDirectory |
                              kMakeRegular | kMakeSocket | kMakeFifo | kMakeBlock | kMakeLink;
// write_file writes a temporary file in the directory and renames it over another.
constexpr uint64_t kOutputs = kWriteFile | kRemoveFile | kMakeRegular;
constexpr uint64_t kTemporaries = kOutputs | kMakeDirectory | kRemoveDirectory;

}  // namespace landlock

class Ruleset {
 public:
  explicit Ruleset(const SandboxNeeds& needs) {
    const long version = ::syscall(landlock::kCreateRuleset, nullptr, 0, landlock::kCreateRulesetVersion);
    if (version < 1) return;
    version_ = static_cast<int>(version);
    handled_ = landlock::kChanges;
    if (!needs.may_run_programs) handled_ |= landlock::kExecute;
    if (version_ >= 2) handled_ |= landlock::kRefer;
    if (version_ >= 3) handled_ |= landlock::kTruncate;
    landlock::RulesetAttributes attributes{handled_, 0, 0};
    if (version_ >= 4) attributes.handled_access_net = landlock::kBindTcp | landlock::kConnectTcp;
    if (version_ >= 6) attributes.scoped = landlock::kAbstractSockets | landlock::kSignals;
    const size_t size_bytes = version_ >= 6 ? 24 : version_ >= 4 ? 16 : 8;
    descriptor_ = static_cast<int>(::syscall(landlock::kCreateRuleset, &attributes, size_bytes, 0));
  }
  ~Ruleset() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Ruleset(const Ruleset&) = delete;
  Ruleset& operator=(const Ruleset&) = delete;

  // A path that cannot be opened gets no right: writing to it reports the error.
  void allow(const std::string& path, uint64_t access) {
    const int folder = ::open(path.c_str(), O_PATH | O_CLOEXEC);
    if (folder < 0) return;
    landlock::PathBeneath rule{(access | landlock::kTruncate) & handled_, folder};
    struct stat info{};
    // The kernel accepts only these two rights for anything but a directory.
    if (::fstat(folder, &info) == 0 && !S_ISDIR(info.st_mode))
      rule.allowed_access &= landlock::kWriteFile | landlock::kTruncate;
    ::syscall(landlock::kAddRule, descriptor_, landlock::kPathBeneath, &rule, 0);
    ::close(folder);
  }

  bool restrict_self() { return descriptor_ >= 0 && ::syscall(landlock::kRestrictSelf, descriptor_, 0) == 0; }
  int version() const { return version_; }

 private:
  int version_ = 0, descriptor_ = -1;
  uint64_t handled_ = 0;
};

// What links lead to, also where nothing is there.
std::string link_target(std::string path) {
  constexpr int kMaxLinks = 40;  // as the system has it
  for (int links = 0; links < kMaxLinks; ++links) {
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
    if (real) return real.get();
    std::error_code error;
    const std::filesystem::path link = path, next = std::filesystem::read_symlink(link, error);
    if (error) break;
    path = (link.parent_path() / next).string();
  }
  return path;
}

// What is opened for writing when `path` is written: its folder, or itself where it is a folder, a device or a pipe.
std::string written_place(const std::string& path, bool follows_links) {
  struct stat info{};
  const bool is_followed = follows_links || (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode));
  std::string target = is_followed ? link_target(path) : path;
  if (::stat(target.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return target;
  const size_t slash = target.rfind('/');
  return slash == target.npos ? "." : target.substr(0, slash + 1);
}

bool enter_landlock(const SandboxNeeds& needs, int& version) {
  Ruleset ruleset(needs);
  version = ruleset.version();
  if (version == 0) return false;
  std::set<std::string> places;
  for (const std::string& path : needs.outputs) {
    if (!path.empty() && path != "-") places.insert(written_place(path, needs.follows_links));
  }
  for (const std::string& place : places) ruleset.allow(place, landlock::kOutputs);
  if (needs.may_run_programs) {
    std::error_code ignored;
    ruleset.allow(std::filesystem::temp_directory_path(ignored).string(), landlock::kTemporaries);
    ruleset.allow("/dev/null", landlock::kWriteFile);
  }
  return ruleset.restrict_self();
}

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;  // none whose numbers of calls are known here
#endif

// Refused with EPERM: the network, other processes, administration of the machine, and io_uring, whose operations
// seccomp cannot filter.
constexpr long kRefused[] = {
    __NR_socket,
    __NR_socketpair,
    __NR_connect,
    __NR_bind,
    __NR_listen,
    __NR_accept,
    __NR_accept4,
    __NR_sendto,
    __NR_sendmsg,
    __NR_ptrace,
    __NR_process_vm_readv,
    __NR_process_vm_writev,
    __NR_bpf,
    __NR_perf_event_open,
    __NR_mount,
    __NR_umount2,
    __NR_pivot_root,
    __NR_chroot,
    __NR_setns,
    __NR_unshare,
    __NR_init_module,
    __NR_finit_module,
    __NR_delete_module,
    __NR_kexec_load,
    __NR_reboot,
    __NR_swapon,
    __NR_swapoff,
    __NR_acct,
    __NR_add_key,
    __NR_request_key,
    __NR_keyctl,
    __NR_open_by_handle_at,
    __NR_name_to_handle_at,
    __NR_setuid,
    __NR_setgid,
    __NR_setreuid,
    __NR_setregid,
    __NR_setresuid,
    __NR_setresgid,
    __NR_setgroups,
    __NR_personality,
    __NR_quotactl,
    __NR_sethostname,
    __NR_setdomainname,
    __NR_settimeofday,
    __NR_clock_settime,
    __NR_adjtimex,
#ifdef __NR_userfaultfd
    __NR_userfaultfd,
#endif
#ifdef __NR_kexec_file_load
    __NR_kexec_file_load,
#endif
#ifdef __NR_mknod
    __NR_mknod,
#endif
    __NR_mknodat,
    425,
    426,
    427,  // io_uring_setup, _enter, _register
    428,
    429,
    430,
    431,
    432,
    433,  // open_tree, move_mount, fsopen, fsconfig, fsmount, fspick
    438,
    440,
    442,  // pidfd_getfd, process_madvise, mount_setattr
};
// Calls that start programs; refused unless programs may run.
constexpr long kPrograms[] = {
    __NR_execve,
    __NR_execveat,
#ifdef __NR_fork
    __NR_fork,
    __NR_vfork,
#endif
};
constexpr uint32_t kClone3 = 435;

std::vector<sock_filter> filter(const SandboxNeeds& needs) {
  std::vector<sock_filter> code;
  const auto add = [&](uint16_t what, uint32_t value, uint8_t if_true = 0, uint8_t if_false = 0) {
    code.push_back({what, if_true, if_false, value});
  };
  const auto answer = [&](uint32_t what) { add(BPF_RET | BPF_K, what); };
  const auto refuse = [&](long call, uint32_t error) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1);
    answer(SECCOMP_RET_ERRNO | error);
  };
  add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
  add(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0);
  answer(SECCOMP_RET_KILL_PROCESS);  // calls by the numbers of another architecture
  add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
#if defined(__x86_64__)
  add(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);  // x32
  answer(SECCOMP_RET_ERRNO | ENOSYS);
#endif
  for (const long call : kRefused) refuse(call, EPERM);
  if (!needs.may_run_programs) {
    for (const long call : kPrograms) refuse(call, EPERM);
    // Its flags are in memory, which a filter cannot read. After ENOSYS the C library uses clone.
    refuse(kClone3, ENOSYS);
    add(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 0, 3);
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args));  // the low half: both architectures are little-endian
    add(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0);
    answer(SECCOMP_RET_ERRNO | EPERM);
  }
  answer(SECCOMP_RET_ALLOW);
  return code;
}

bool enter_seccomp(const SandboxNeeds& needs) {
  if (kArchitecture == 0) return false;
  std::vector<sock_filter> code = filter(needs);
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  return ::syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

}  // namespace

Result<std::string> enter_sandbox(const SandboxNeeds& needs) {
  // Required by both for unprivileged users: programs started from here gain no privileges.
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return fail(fmt::format("no sandbox: cannot set no_new_privs: {}", std::strerror(errno)));
  int version = 0;
  const bool has_landlock = enter_landlock(needs, version);
  const bool has_seccomp = enter_seccomp(needs);
  if (has_landlock && has_seccomp) return fmt::format("Landlock {} and seccomp", version);
  if (!has_landlock && !has_seccomp) return fail("no sandbox: the kernel has neither Landlock nor seccomp");
  return has_landlock ? fail(fmt::format("half a sandbox: Landlock {}, and no seccomp filter can be set", version))
                      : fail("half a sandbox: seccomp, and the kernel has no Landlock");
}

std::optional<std::string> sandbox_fault(std::string_view when) {
  if (when == kSandboxAuto || when == kSandboxRequire || when == kSandboxOff) return std::nullopt;
  return fmt::format("--sandbox: expected {}, {}, {}, found '{}'", kSandboxAuto, kSandboxRequire, kSandboxOff, when);
}

Result<std::string> begin_sandbox(std::string_view when, const SandboxNeeds& needs, std::string_view gpu_user) {
  if (when == kSandboxOff) return std::string();
  const bool is_required = when == kSandboxRequire;
  std::string missing;
  if (!gpu_user.empty())
    missing = fmt::format("no sandbox: {} may use a GPU, whose driver opens files and devices of its own", gpu_user);
  else if (const std::string conflict = sandbox_conflict(); !conflict.empty() && !is_required)
    missing = "no sandbox: " + conflict;
  else if (const auto entered = enter_sandbox(needs); !entered)
    missing = entered.error().message();
  if (is_required && !missing.empty()) return fail("--sandbox=require: " + missing);
  return missing;
}

std::string sandbox_conflict() {
#if defined(PTXKIT_COUNTS_LINES)
  return "this build counts lines, and writes the counts at its end";
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return "this build has a sanitizer, which looks at the process from outside";
#else
  return "";
#endif
}

}  // namespace ptxkit
