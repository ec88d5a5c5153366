// A block device of compressed pages, as zram is one, that outlives its process: the fixed newstyle NBD protocol on a
// Unix socket, one client at a time. Whatever was written is in BACKING before the client hears of it, so the server
// may be killed at any moment and started again; after a flush it survives a power failure too.
// https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md
//
// usage: nbd_server BACKING SIZE_MIB SOCKET        then, as root: nbd-client -unix SOCKET /dev/nbd0
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "page_journal.hpp"

namespace {

constexpr uint64_t kOptionMagic = 0x49484156454F5054, kReplyMagic = 0x3e889045565a9;
constexpr uint32_t kRequestMagic = 0x25609513, kSimpleReplyMagic = 0x67446698;
constexpr uint32_t kMostBytes = 32u << 20;  // of a request; the size that clients may rely on

enum Option : uint32_t { export_name = 1, abort_session = 2, list = 3, info = 6, go = 7 };
enum OptionReply : uint32_t {
  ack = 1,
  server = 2,
  information = 3,
  unsupported = 1u << 31 | 1,
  invalid = 1u << 31 | 3
};
enum Command : uint16_t { read_pages = 0, write_pages = 1, disconnect = 2, flush = 3, trim = 4, write_zeroes = 6 };
enum Status : uint32_t { fine = 0, io_error = 5, bad_request = 22, no_space = 28 };
constexpr uint16_t kForceUnitAccess = 1;
// HAS_FLAGS, SEND_FLUSH, SEND_FUA, SEND_TRIM, SEND_WRITE_ZEROES
constexpr uint16_t kExportFlags = 1 | 4 | 8 | 32 | 64;

// A connection. After an error every call fails.
class Client {
 public:
  explicit Client(int descriptor) : descriptor_(descriptor) {}
  ~Client() { ::close(descriptor_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool receive(uint8_t* into, size_t count) {
    for (size_t done = 0; done < count && is_open_;) {
      const ssize_t got = ::recv(descriptor_, into + done, count - done, 0);
      if (got < 0 && errno == EINTR) continue;
      is_open_ = got > 0;
      done += is_open_ ? static_cast<size_t>(got) : 0;
    }
    return is_open_;
  }
  // A number; 0 after an error. NBD's numbers are big-endian.
  template <class T>
  T number() {
    uint8_t bytes[sizeof(T)] = {};
    receive(bytes, sizeof bytes);
    T value = 0;
    for (const uint8_t byte : bytes) value = static_cast<T>(value << 8 | byte);
    return is_open_ ? value : 0;
  }
  bool skip(uint64_t count) {
    uint8_t waste[4096];
    while (count != 0 && receive(waste, std::min<uint64_t>(count, sizeof waste)))
      count -= std::min<uint64_t>(count, sizeof waste);
    return is_open_;
  }

  template <class T>
  Client& add(T value) {
    for (size_t i = sizeof value; i-- > 0;) out_.push_back(static_cast<uint8_t>(value >> 8 * i));
    return *this;
  }
  Client& add(ptxkit::api::Bytes bytes) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  bool send() {
    for (size_t done = 0; done < out_.size() && is_open_;) {
      const ssize_t sent = ::send(descriptor_, out_.data() + done, out_.size() - done, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      is_open_ = sent > 0;
      done += is_open_ ? static_cast<size_t>(sent) : 0;
    }
    out_.clear();
    return is_open_;
  }
  bool is_open() const { return is_open_; }

 private:
  int descriptor_;
  bool is_open_ = true;
  std::vector<uint8_t> out_;
};

class Device {
 public:
  Device(uint64_t size_bytes, PageCache& cache, PageJournal& journal)
      : size_bytes_(size_bytes), cache_(cache), journal_(journal) {}

  void serve(Client& client) {
    if (!negotiate(client)) return;
    while (client.is_open() && answer(client)) {
    }
  }

 private:
  // Until the client has chosen the one export; false if it goes.
  bool negotiate(Client& client) {
    constexpr uint16_t kFixedNewstyle = 1, kNoZeroes = 2;
    client.add(uint64_t{0x4e42444d41474943}).add(kOptionMagic).add(uint16_t{kFixedNewstyle | kNoZeroes}).send();
    const auto client_flags = client.number<uint32_t>();
    if (!(client_flags & kFixedNewstyle) || client_flags & ~uint32_t{kFixedNewstyle | kNoZeroes}) return false;
    while (client.number<uint64_t>() == kOptionMagic) {
      const auto option = client.number<uint32_t>(), bytes = client.number<uint32_t>();
      if (!client.skip(bytes)) return false;  // names and wishes: there is one export, of any name
      const auto reply = [&](uint32_t type, uint32_t reply_bytes) -> Client& {
        return client.add(kReplyMagic).add(option).add(type).add(reply_bytes);
      };
      if (option == export_name) {
        client.add(size_bytes_).add(kExportFlags);
        if (!(client_flags & kNoZeroes)) client.add(ptxkit::api::Bytes(std::vector<uint8_t>(124)));
        return client.send();
      }
      if (option == info || option == go) {
        if (bytes < 6) {
          reply(invalid, 0).send();
          continue;
        }
        constexpr uint16_t kExport = 0, kBlockSize = 3;
        reply(information, 12).add(kExport).add(size_bytes_).add(kExportFlags);
        reply(information, 14).add(kBlockSize).add(uint32_t{1}).add(uint32_t{kPageBytes}).add(kMostBytes);
        reply(ack, 0).send();
        if (option == go) return client.is_open();
      } else if (option == list) {
        reply(server, 4).add(uint32_t{0});  // the export without a name
        reply(ack, 0).send();
      } else if (option == abort_session) {
        reply(ack, 0).send();
        return false;
      } else {
        reply(unsupported, 0).send();
      }
    }
    return false;
  }

  // A request; false where the connection ends.
  bool answer(Client& client) {
    if (client.number<uint32_t>() != kRequestMagic) return false;
    const auto flags = client.number<uint16_t>(), command = client.number<uint16_t>();
    const auto cookie = client.number<uint64_t>(), offset = client.number<uint64_t>();
    const auto bytes = client.number<uint32_t>();
    if (!client.is_open() || command == disconnect) return false;
    const bool is_inside = offset <= size_bytes_ && bytes <= size_bytes_ - offset;
    const bool has_data = command == read_pages || command == write_pages;
    std::vector<uint8_t> data;
    Status status = fine;
    if (has_data && bytes > kMostBytes) {
      // What follows a write cannot be told from requests unless it is taken in.
      if (command == write_pages) return false;
      status = bad_request;
    } else {
      if (command == write_pages) {
        data.resize(bytes);
        if (!client.receive(data.data(), bytes)) return false;
      }
      if (!is_inside && command != flush) {
        status = command == write_pages || command == write_zeroes ? no_space : bad_request;
      } else if (command == read_pages) {
        data.resize(bytes);
        status = read(offset, data) ? fine : io_error;
      } else if (command == write_pages) {
        status = write(offset, bytes, data.data()) ? fine : io_error;
      } else if (command == trim || command == write_zeroes) {
        status = write(offset, bytes, nullptr) ? fine : io_error;
      } else if (command == flush) {
        status = journal_.sync() ? fine : io_error;
      } else {
        status = bad_request;
      }
      if (status == fine && flags & kForceUnitAccess && command != read_pages && !journal_.sync()) status = io_error;
    }
    client.add(kSimpleReplyMagic).add(uint32_t{status}).add(cookie);
    if (command == read_pages && status == fine) client.add(ptxkit::api::Bytes(data));
    return client.send();
  }

  // A page that was never written is one of zeros; nothing if its bytes are damaged.
  std::optional<Page> page(uint64_t number) { return cache_.has(number) ? cache_.get(number) : Page{}; }

  bool read(uint64_t offset, std::vector<uint8_t>& into) {
    for (size_t done = 0; done < into.size();) {
      const uint64_t at = offset + done, within = at % kPageBytes;
      const size_t count = std::min<size_t>(kPageBytes - within, into.size() - done);
      const auto found = page(at / kPageBytes);
      if (!found) return false;
      std::memcpy(into.data() + done, found->data() + within, count);
      done += count;
    }
    return true;
  }

  // Without `from`, zeros. Pages of a request may be written one without another if the server is killed meanwhile, as
  // sectors of a disk may.
  bool write(uint64_t offset, uint32_t bytes, const uint8_t* from) {
    constexpr size_t kPagesAtOnce = 8192;
    std::map<uint64_t, Page> pages;
    for (uint64_t done = 0; done < bytes;) {
      const uint64_t at = offset + done, within = at % kPageBytes;
      const size_t count = std::min<uint64_t>(kPageBytes - within, bytes - done);
      std::optional<Page> changed = count == kPageBytes ? Page{} : page(at / kPageBytes);
      if (!changed) return false;
      if (from != nullptr) {
        std::memcpy(changed->data() + within, from + done, count);
      } else {
        std::memset(changed->data() + within, 0, count);
      }
      pages[at / kPageBytes] = *changed;
      done += count;
      if (pages.size() == kPagesAtOnce || done == bytes) {
        auto slots = cache_.compressed(pages);
        if (!slots || !journal_.append(*slots)) return false;
        cache_.put(std::move(*slots));
        pages.clear();
      }
    }
    journal_.compact(cache_);  // if it fails, which it says, the journal is longer than it need be
    return true;
  }

  uint64_t size_bytes_;
  PageCache& cache_;
  PageJournal& journal_;
};

// A socket of this user alone. An old one, which a killed server leaves, is replaced.
int listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return errno = ENAMETOOLONG, -1;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  struct stat found{};
  if (::lstat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode)) ::unlink(path.c_str());
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ::umask(0177);
  if (listener < 0 || ::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return -1;
  return ::listen(listener, 1) == 0 ? listener : -1;
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned long mebibytes = argc == 4 ? std::strtoul(argv[2], nullptr, 10) : 0;
  if (mebibytes == 0 || mebibytes > 1ul << 20) {
    std::fprintf(stderr, "usage: nbd_server BACKING SIZE_MIB SOCKET    SIZE_MIB: 1 to 1048576\n");
    return 2;
  }
  auto context = cpu_context(0);
  if (!context) return 1;
  PageCache cache(std::move(*context));
  const uint64_t size_bytes = uint64_t{mebibytes} << 20;
  auto journal = PageJournal::open(argv[1], size_bytes, cache);
  if (!journal) return 1;
  const int listener = listen_at(argv[3]);
  if (listener < 0) return std::fprintf(stderr, "%s: cannot listen: %s\n", argv[3], std::strerror(errno)), 1;
  std::printf("%zu pages, %zu bytes stored, journal of %llu bytes\n", cache.slots().size(), cache.stored_bytes(),
              static_cast<unsigned long long>(journal->size_bytes()));
  std::fflush(stdout);
  Device device(size_bytes, cache, *journal);
  for (;;) {
    const int descriptor = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (descriptor < 0) continue;
    Client client(descriptor);
    device.serve(client);
  }
}
