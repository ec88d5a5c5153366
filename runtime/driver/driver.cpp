#include "runtime/driver/driver.hpp"

#include <cstdlib>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>

namespace ptxkit::driver {
namespace {

constexpr const char* kDefaultLibrary = "libcuda.so.1";

DriverAbsent broken(Error error) { return {Absence::broken, std::move(error)}; }

// Where no library is named.
std::string name_of(std::string library) {
  if (!library.empty()) return library;
  const char* chosen = ::secure_getenv("PTXKIT_LIBCUDA");
  return chosen != nullptr && *chosen != '\0' ? chosen : kDefaultLibrary;
}

}  // namespace

bool Driver::is_installed(std::string library) {
  return ::dlopen(name_of(std::move(library)).c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr;  // never closed, as below
}

tl::expected<std::shared_ptr<const Driver>, DriverAbsent> Driver::open(std::string library) {
  library = name_of(std::move(library));
  std::shared_ptr<Driver> driver(new Driver);
  // Never closed: threads of the driver would return into unmapped code.
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    return tl::unexpected(DriverAbsent{Absence::not_installed,
                                       Error{fmt::format("no NVIDIA driver: {}", reason != nullptr ? reason : library),
                                             {},
                                             "install the NVIDIA driver, or use --backend cpu"}});
  }

  std::vector<const char*> missing;
#define SYMBOL(need, member, exported, parameters)                                      \
  driver->api_.member = reinterpret_cast<int(*) parameters>(::dlsym(handle, exported)); \
  if (std::string_view(#need) == "required" && driver->api_.member == nullptr) missing.push_back(exported);
#include "runtime/driver/symbols.def"
#undef SYMBOL
  if (!missing.empty()) {
    return tl::unexpected(
        broken(Error{fmt::format("the driver lacks functions that are needed: {}", fmt::join(missing, ", ")), library,
                     "install a newer NVIDIA driver"}));
  }

  const Api& api = driver->api_;
  if (auto done = driver->check(api.init(0), "cuInit", library); !done) {
    return tl::unexpected(broken(std::move(done.error())));
  }
  if (auto done = driver->check(api.driver_get_version(&driver->version_), "cuDriverGetVersion", library); !done) {
    return tl::unexpected(broken(std::move(done.error())));
  }
  if (driver->version_ < kMinimumDriverVersion) {
    return tl::unexpected(
        broken(Error{fmt::format("the driver is too old: expected one for CUDA {}.{} or later, found {}.{}",
                                 kMinimumDriverVersion / 1000, kMinimumDriverVersion % 1000 / 10,
                                 driver->version_ / 1000, driver->version_ % 1000 / 10),
                     library, "install a newer NVIDIA driver, or use --backend cpu"}));
  }
  if (auto done = driver->check(api.device_get_count(&driver->device_count_), "cuDeviceGetCount", library); !done) {
    return tl::unexpected(broken(std::move(done.error())));
  }
  constexpr int kNoDevice = 100;
  if (driver->device_count_ == 0) return tl::unexpected(broken(driver_error(kNoDevice, "cuDeviceGetCount", library)));
  return driver;
}

Result<void> Driver::check(int status, const char* call, std::string_view where) const {
  if (status == 0) return {};
  return tl::unexpected(driver_error(status, call, where));
}

}  // namespace ptxkit::driver
