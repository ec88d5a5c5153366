// The pages of a cache in a file, so that they outlive the process. Records are appended, each with a checksum; when
// the file is opened they are replayed up to the first one that is not whole, and the rest is cut off. What a process
// had written before it was killed is there again; what it had synchronised survives a power failure too. When more
// than half of the file is outdated, it is written anew beside itself and renamed.
//
// All numbers are little-endian. The file: "PTXPAGES", the size of the device (u64), records. A record: page number
// (u64), length (u32), CRC-32 of these 12 bytes and the slot (u32), slot.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "page_cache.hpp"

class PageJournal {
 public:
  // Opens the file, or makes it, and puts its pages into `cache`. Nothing, and a message, if that fails.
  static std::optional<PageJournal> open(const std::string& path, uint64_t device_bytes, PageCache& cache) {
    PageJournal journal(path, device_bytes);
    journal.descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (journal.descriptor_ < 0) return journal.fails("cannot open");
    if (::flock(journal.descriptor_, LOCK_EX | LOCK_NB) != 0) return journal.fails("in use by another process");
    if (!journal.replay(cache)) return std::nullopt;
    return journal;
  }
  PageJournal(PageJournal&& other) noexcept
      : path_(std::move(other.path_)),
        device_bytes_(other.device_bytes_),
        descriptor_(std::exchange(other.descriptor_, -1)),
        size_bytes_(other.size_bytes_),
        has_lasting_name_(other.has_lasting_name_) {}
  PageJournal& operator=(PageJournal&&) = delete;
  ~PageJournal() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  // Before the pages are put into the cache. After a failure the file holds none of them.
  bool append(const PageCache::Slots& slots) {
    constexpr size_t kPieceBytes = 1 << 20;
    std::vector<uint8_t> records;
    uint64_t end = size_bytes_;
    const auto write = [&] {
      const bool is_written = write_at(descriptor_, end, records);
      end += records.size();
      records.clear();
      return is_written;
    };
    bool is_written = true;
    for (auto at = slots.begin(); at != slots.end() && is_written; ++at) {
      add_record(at->first, at->second, records);
      if (records.size() >= kPieceBytes) is_written = write();
    }
    if (is_written && write()) {
      size_bytes_ = end;
      return true;
    }
    fails("cannot write");
    if (::ftruncate(descriptor_, static_cast<off_t>(size_bytes_)) != 0) fails("cannot cut off a record");
    return false;
  }

  // What was appended is on the disk, under the file's name.
  bool sync() {
    if (::fdatasync(descriptor_) != 0) return fails("cannot reach the disk"), false;
    if (has_lasting_name_) return true;
    const std::string folder = path_.substr(0, path_.rfind('/') + 1);
    const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    has_lasting_name_ = descriptor >= 0 && ::fsync(descriptor) == 0;
    if (!has_lasting_name_) fails("its folder cannot reach the disk");
    if (descriptor >= 0) ::close(descriptor);
    return has_lasting_name_;
  }

  // Call it after the pages have been put into the cache. False if the file could not be replaced; it is whole then.
  bool compact(const PageCache& cache) {
    constexpr uint64_t kSmallBytes = 1 << 20;
    const uint64_t needed_bytes = kHeaderBytes + cache.slots().size() * (kRecordBytes + 1) + cache.stored_bytes();
    if (size_bytes_ < kSmallBytes || size_bytes_ < 2 * needed_bytes) return true;
    const std::string fresh_path = path_ + ".new";
    PageJournal fresh(fresh_path, device_bytes_);
    fresh.descriptor_ = ::open(fresh_path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fresh.descriptor_ < 0 || ::flock(fresh.descriptor_, LOCK_EX | LOCK_NB) != 0)
      return fresh.fails("cannot open"), false;
    const bool is_whole = fresh.begin() && fresh.append(cache.slots()) && fresh.sync();
    if (!is_whole || ::rename(fresh_path.c_str(), path_.c_str()) != 0) {
      if (is_whole) fresh.fails("cannot be put in place");
      ::unlink(fresh_path.c_str());
      return false;
    }
    std::swap(descriptor_, fresh.descriptor_);
    size_bytes_ = fresh.size_bytes_;
    has_lasting_name_ = false;
    return true;
  }

  uint64_t size_bytes() const { return size_bytes_; }

 private:
  static constexpr size_t kHeaderBytes = 16, kRecordBytes = 16;

  PageJournal(std::string path, uint64_t device_bytes) : path_(std::move(path)), device_bytes_(device_bytes) {}

  std::nullopt_t fails(const char* what) const {
    std::fprintf(stderr, "%s: %s: %s\n", path_.c_str(), what, std::strerror(errno));
    return std::nullopt;
  }

  template <class T>
  static void add(T value, std::vector<uint8_t>& to) {
    for (size_t i = 0; i < sizeof value; ++i) to.push_back(static_cast<uint8_t>(value >> 8 * i));
  }
  template <class T>
  static T number_at(const uint8_t* from) {
    T value = 0;
    for (size_t i = 0; i < sizeof value; ++i) value |= static_cast<T>(static_cast<T>(from[i]) << 8 * i);
    return value;
  }

  static void add_record(uint64_t number, const PageCache::Slot& slot, std::vector<uint8_t>& to) {
    const size_t begin = to.size();
    add(number, to);
    add(static_cast<uint32_t>(slot.size()), to);
    add(checksum(to.data() + begin, slot), to);
    to.insert(to.end(), slot.begin(), slot.end());
  }
  // The CRC-32 of IEEE 802.3.
  static uint32_t checksum(const uint8_t* first_12_bytes, const PageCache::Slot& slot) {
    static const auto table = [] {
      std::array<uint32_t, 256> all{};
      for (uint32_t i = 0; i < 256; ++i) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0xEDB88320u : 0);
        all[i] = value;
      }
      return all;
    }();
    uint32_t state = ~0u;
    const auto take = [&](uint8_t byte) { state = state >> 8 ^ table[(state ^ byte) & 0xff]; };
    for (size_t i = 0; i < 12; ++i) take(first_12_bytes[i]);
    for (const uint8_t byte : slot) take(byte);
    return ~state;
  }

  static bool write_at(int descriptor, uint64_t at, const std::vector<uint8_t>& bytes) {
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t count =
          ::pwrite(descriptor, bytes.data() + done, bytes.size() - done, static_cast<off_t>(at + done));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      done += static_cast<size_t>(count);
    }
    return true;
  }
  // Whether `count` bytes are there.
  bool read_at(uint64_t at, uint8_t* into, size_t count) const {
    for (size_t done = 0; done < count;) {
      const ssize_t got = ::pread(descriptor_, into + done, count - done, static_cast<off_t>(at + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      done += static_cast<size_t>(got);
    }
    return true;
  }

  std::vector<uint8_t> header() const {
    std::vector<uint8_t> bytes{'P', 'T', 'X', 'P', 'A', 'G', 'E', 'S'};
    add(device_bytes_, bytes);
    return bytes;
  }
  bool begin() {
    size_bytes_ = kHeaderBytes;
    return write_at(descriptor_, 0, header()) || (fails("cannot write"), false);
  }

  bool replay(PageCache& cache) {
    const std::vector<uint8_t> expected = header();
    std::vector<uint8_t> found(kHeaderBytes);
    const off_t length = ::lseek(descriptor_, 0, SEEK_END);
    found.resize(std::min<size_t>(kHeaderBytes, static_cast<size_t>(length)));
    if (!read_at(0, found.data(), found.size())) return fails("cannot read"), false;
    if (!std::equal(found.begin(), found.end(), expected.begin())) {
      std::fprintf(stderr, "%s: expected the pages of a device of %llu bytes, found another file or size\n",
                   path_.c_str(), static_cast<unsigned long long>(device_bytes_));
      return false;
    }
    // A new file, or one whose process was killed before it had written the header.
    if (found.size() < kHeaderBytes) return begin() && sync();
    size_bytes_ = kHeaderBytes;
    for (;;) {
      uint8_t record[kRecordBytes];
      if (!read_at(size_bytes_, record, sizeof record)) break;
      const auto number = number_at<uint64_t>(record);
      const auto bytes = number_at<uint32_t>(record + 8);
      if (number >= device_bytes_ / kPageBytes || bytes == 0 || bytes > kPageBytes + 1) break;
      PageCache::Slot slot(bytes);
      if (!read_at(size_bytes_ + kRecordBytes, slot.data(), bytes)) break;
      if (checksum(record, slot) != number_at<uint32_t>(record + 12)) break;
      PageCache::Slots slots;
      slots.emplace(number, std::move(slot));
      cache.put(std::move(slots));
      size_bytes_ += kRecordBytes + bytes;
    }
    if (length == static_cast<off_t>(size_bytes_)) return true;
    std::fprintf(stderr, "%s: cutting off %llu bytes behind the last whole record\n", path_.c_str(),
                 static_cast<unsigned long long>(length) - static_cast<unsigned long long>(size_bytes_));
    return ::ftruncate(descriptor_, static_cast<off_t>(size_bytes_)) == 0 || (fails("cannot cut off"), false);
  }

  std::string path_;
  uint64_t device_bytes_;
  int descriptor_ = -1;
  uint64_t size_bytes_ = 0;
  bool has_lasting_name_ = false;  // a power failure does not undo the creation or the renaming
};
