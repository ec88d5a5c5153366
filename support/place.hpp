// Where a file is: an opened folder and a name in it. A path is followed once; what is done by its place afterwards
// meets the same folder, whatever other users put in its path meanwhile.
#pragma once

#include <compare>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <sys/stat.h>

#include "support/result.hpp"

namespace ptxkit {

// Owns a file descriptor; a negative number: none.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();

  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_;
};

// Two files are one if these are equal, as long as one of them is open.
struct FileIdentity {
  dev_t device = 0;
  ino_t number = 0;
  explicit FileIdentity(const struct stat& info) : device(info.st_dev), number(info.st_ino) {}
  auto operator<=>(const FileIdentity&) const = default;
};

struct Place {
  std::shared_ptr<const Descriptor> folder;  // opened by O_PATH
  std::string folder_path;                   // how it was reached; ends in a slash or is empty
  std::string name;

  int at() const { return folder->number(); }
  std::string path() const { return folder_path + name; }
  // As fstatat(2).
  bool status(struct stat& info, int flags) const;
};

// The part of `path` before its name, with the slash.
std::string_view folder_of(std::string_view path);
// Opens the folder of `path`, links to it included. `path` itself is not looked at. Nothing, with errno, on failure.
std::optional<Place> place_of(const std::string& path);
// The place of `path` below an opened folder; no part of it may be a link or lead upwards.
std::optional<Place> place_below(const Descriptor& root, const std::string& root_path, std::string_view path);

// What a name leads to.
struct Target {
  Place place;                      // where links lead to in the end; there is no link in it
  std::optional<struct stat> info;  // nothing where nothing is there
  bool is_link = false;             // whether links were followed
  std::optional<int> descriptor;    // set if the name is that of a descriptor of this process, as /dev/stdout is
  bool is_of_process = false;       // a descriptor of another process or thread, which only its name opens
};

// Follows the links at `place`, which may lead to nothing. As the kernel with fs.protected_symlinks, follows no link of
// another user in a folder like /tmp. Nothing, with errno, on failure.
std::optional<Target> follow(Place place);

// Opens a device or a pipe that follow() has found, for writing. Fails if something else is there now.
Result<Descriptor> open_existing(const Target& target, const std::string& path);

// What `path` leads to; "-" is the descriptor `standard`. Nothing, with errno, on failure.
std::optional<Target> target_of(const std::string& path, int standard);

// Whether what is written to one is written to the other: they are one file, or one name where no file is yet. Devices
// and pipes are not compared.
bool is_same_file(const Target& a, const Target& b);

}  // namespace ptxkit
