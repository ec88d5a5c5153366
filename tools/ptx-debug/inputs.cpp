// See inputs.hpp. The walk does not follow links to folders, so it ends.
#include "tools/ptx-debug/inputs.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "analyzer/analyze/place.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "support/file.hpp"
#include "support/plural.hpp"
#include "support/printable.hpp"
#include "support/regular_file.hpp"
#include "tools/ptx-debug/option_values.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kMaxJobs = 1024;

// Walks a folder. It follows a link to a file only if the target lies below the folder: an untrusted tree may link to
// any file.
struct Walk {
  std::string real_root;
  std::vector<std::string> files = {};  // regular files, sorted by name
  size_t outside_count = 0;             // links whose target lies outside
  std::optional<Error> error = {};      // a folder that cannot be listed

  void add(const fs::path& folder) {
    std::error_code code;
    std::vector<fs::path> names;
    for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
      names.push_back(entry->path());
    }
    if (code) error = Error{fmt::format("cannot list: {}", code.message()), folder.string(), {}};
    std::ranges::sort(names);
    for (const fs::path& name : names) {
      std::error_code ignored;
      const bool is_link = fs::is_symlink(name, ignored);
      if (fs::is_directory(name, ignored)) {
        if (!is_link) add(name);
      } else if (fs::is_regular_file(name, ignored)) {
        const bool is_outside = is_link && !is_below(real_path(name.string()), real_root);
        if (is_outside)
          ++outside_count;
        else
          files.push_back(name.string());
      }
    }
  }
};

// Whether the name or the first bytes of the file suggest that it holds PTX.
bool may_hold_ptx(const std::string& path) {
  if (path.ends_with(".ptx")) return true;
  if (path.ends_with(".cubin")) return false;
  char bytes[64] = {};
  std::ifstream file(path, std::ios::binary);
  file.read(bytes, sizeof bytes);
  return container::is_container({bytes, static_cast<size_t>(file.gcount())});
}

Error no_ptx(const std::string& path, const container::Contents& contents) {
  if (contents.machine_code.empty()) return {"no PTX in it: it has no fat binary", path, {}};
  std::vector<std::string> targets = contents.machine_code;
  std::ranges::sort(targets);
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  return {fmt::format("no PTX in it, only machine code ({})", fmt::join(targets, ", ")), path,
          "compile with -gencode arch=compute_NN,code=compute_NN, which puts the PTX in as well"};
}

// Whether the text contains a zero byte before its end. Programs that save NVRTC's output often keep its final zero
// byte.
bool is_binary(std::string_view text) {
  const size_t first = text.find('\0');
  return first == 0 || (first != text.npos && first < text.find_last_not_of('\0'));
}

Result<container::Contents> read_contents(const std::string& path) {
  auto bytes = read_file(path);
  if (!bytes) return tl::unexpected(bytes.error());
  auto contents = container::read_images(std::move(*bytes), path);
  if (contents && contents->images.size() == 1 && is_binary(contents->images.front().text))
    return fail("no PTX: a binary file of an unknown kind", path,
                "give PTX, a fat binary, an executable, an object or a static library");
  return contents;
}

}  // namespace

std::string file_of(const std::string& name) {
  std::error_code ignored;
  if (fs::exists(name, ignored)) return name;
  for (size_t at = name.find_first_of(":("); at != name.npos; at = name.find_first_of(":(", at + 1)) {
    if (fs::is_regular_file(name.substr(0, at), ignored)) return name.substr(0, at);
  }
  return {};
}

Result<container::PtxImage> read_one_image(const std::string& word) {
  const std::string file = word == "-" ? word : file_of(word);
  const std::string around = file == word ? "" : file;
  auto contents = read_contents(around.empty() ? word : around);
  if (!contents) return tl::unexpected(contents.error());
  if (contents->images.empty()) return tl::unexpected(no_ptx(around.empty() ? word : around, *contents));
  std::string names;
  for (container::PtxImage& image : contents->images) {
    if (around.empty() ? contents->images.size() == 1 : image.name == word) return std::move(image);
    names += (names.empty() ? "" : ", ") + image.name;
  }
  return fail(around.empty() ? fmt::format("{} PTX texts in it, expected one", contents->images.size())
                             : fmt::format("no text '{}'", word),
              around.empty() ? word : around, "give one of " + names);
}

void add_inputs(Verb& verb, Inputs& inputs) {
  verb.option("FILE", inputs.words,
              "PTX files, fat binaries, executables, objects and libraries with PTX in them, folders of these; - is "
              "standard input")
      .required();
  verb.option("-j,--jobs", inputs.jobs, "texts to work on at the same time; 0: as many as there are cores")
      .type_name("N")
      .check(whole_number(kMaxJobs));
  add_sandbox(verb, inputs.sandbox);
}

std::optional<std::string> fault(const Inputs& inputs) {
  if (std::ranges::count(inputs.words, "-") > 1) return "standard input can be read only once";
  return fault(inputs.sandbox);
}

ImageReader::ImageReader(std::vector<std::string> words) : words_(std::move(words)) {}

std::vector<Input> ImageReader::next() {
  batch_.clear();
  batch_bytes_ = 0;
  while (batch_bytes_ < kBatchBytes) {
    if (!pending_.empty()) {
      const std::string path = std::move(pending_.back());
      pending_.pop_back();
      if (may_hold_ptx(path)) {
        add_file(path, true);
      } else {
        ++passed_over_count_;
      }
    } else if (!folder_.empty()) {
      if (found_count_ == 0) {
        batch_.push_back(
            {{},
             folder_,
             Error{fmt::format("no PTX in any of the {} files below it", passed_over_count_), folder_, {}}});
      } else if (passed_over_count_ != 0) {
        complain(fmt::format("{}: {} with PTX, {} skipped", folder_, plural(found_count_, "file"),
                             plural(passed_over_count_, "other")));
      }
      folder_.clear();
    } else if (next_word_ < words_.size()) {
      add_word(words_[next_word_++]);
    } else {
      break;
    }
  }
  return std::move(batch_);
}

void ImageReader::add_word(const std::string& word) {
  std::error_code ignored;
  if (word == "-" || !fs::is_directory(word, ignored)) return add_file(word, false);
  Walk walk{real_path(word)};
  walk.add(word);
  pending_ = std::move(walk.files);
  std::ranges::reverse(pending_);
  if (walk.error) batch_.push_back({{}, word, walk.error});
  folder_ = word;
  found_count_ = 0;
  passed_over_count_ = walk.outside_count;
}

void ImageReader::add_file(const std::string& path, bool is_in_folder) {
  const auto refuse = [&](const Error& error) {
    ++found_count_;
    batch_.push_back({{}, path, error});
  };
  auto contents = read_contents(path);
  if (!contents) return refuse(contents.error());
  if (contents->images.empty() && is_in_folder) {
    ++passed_over_count_;
    return;
  }
  if (contents->images.empty()) return refuse(no_ptx(path, *contents));
  ++found_count_;
  for (container::PtxImage& image : contents->images) {
    batch_bytes_ += image.text.size();
    batch_.push_back({std::move(image), path, std::nullopt});
  }
}

Frame json_list(std::string_view schema, std::string_view key) {
  const auto separate = [is_first = true](ImageResult& answer) mutable {
    if (answer.text.empty()) return;
    answer.text.insert(0, is_first ? "\n" : ",\n");
    is_first = false;
  };
  return {fmt::format("{{\"schema\": \"{}\", \"{}\": [", schema, key), separate, "\n]}\n", false};
}

int print_each_result(std::string_view verb, const Inputs& inputs,
                      const std::function<ImageResult(container::PtxImage, const std::string& path)>& work,
                      const Frame& frame) {
  if (const auto what = fault(inputs)) return usage_error(verb, *what);
  if (const auto code = begin_sandbox(inputs.sandbox, {})) return *code;
  rules::Status status = rules::Status::good;
  const auto write = [&](const std::string& text) {
    if (!text.empty() && !(frame.is_ptx ? print_bytes(text) : print(text))) status = rules::Status::unreadable;
  };
  write(frame.head);
  for_each_image(
      inputs, work,
      [&](ImageResult answer) {
        status = std::max(status, answer.status);
        fmt::print(stderr, "{}", without_commands(answer.error_text));
        if (frame.each) frame.each(answer);
        write(answer.text);
      },
      [&](const std::string&, const Error& error) {
        status = rules::Status::unreadable;
        complain(error.message());
      });
  write(frame.tail);
  return rules::exit_code(status);
}

ImageResult answer_parsed(container::PtxImage image, const std::function<ImageResult(const ptx::Module&)>& work) {
  const ptx::ParseResult parsed = ptx::parse(std::move(image.text), std::move(image.name));
  if (!parsed.diagnostics.empty()) return {rules::Status::unparsable, {}, report::rendered(parsed)};
  return work(parsed.module);
}

}  // namespace ptxkit::tools
