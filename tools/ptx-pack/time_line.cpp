#include "tools/ptx-pack/time_line.hpp"

#include <optional>
#include <utility>

#include <unistd.h>

#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/file_format.hpp"
#include "support/place.hpp"

namespace ptxkit::pack {
namespace {

// Whether both would be written to one pipe or socket; a device may be named several times.
bool is_same_pipe(const Target& a, const Target& b) {
  return a.info && b.info && (S_ISFIFO(a.info->st_mode) || S_ISSOCK(a.info->st_mode)) &&
         FileIdentity(*a.info) == FileIdentity(*b.info);
}

// The outputs that `input` may have.
std::vector<std::string> outputs_of(const Options& options, const std::string& input) {
  std::vector<std::string> outputs;
  if (options.mode != Mode::compress && options.mode != Mode::decompress) return outputs;
  std::vector<format::FileFormat> formats = {options.format};
  if (options.chooses != Chooses::named) formats.push_back(format::FileFormat::ptz);
  for (const format::FileFormat format : formats) {
    if (auto output = output_path(options, input, format)) outputs.push_back(std::move(*output));
  }
  return outputs;
}

}  // namespace

Result<void> check_time_line(const Options& options, const std::vector<std::string>& inputs) {
  const std::string& trace = *options.trace;
  const auto target = target_of(trace, STDOUT_FILENO);
  if (!target) return {};  // opening it says why
  for (const std::string& input : inputs) {
    if (const auto read = target_of(input, STDIN_FILENO); read && is_same_file(*target, *read))
      return fail("--trace names an input, which would be overwritten", trace, "name another file");
    for (const std::string& output : outputs_of(options, input)) {
      const auto written = target_of(output, STDOUT_FILENO);
      if (written && (is_same_file(*target, *written) || is_same_pipe(*target, *written)))
        return fail("--trace and an output are the same file", trace, "name another file");
    }
  }
  const bool is_file = !target->descriptor && (!target->info || S_ISREG(target->info->st_mode));
  if (!is_file) return {};
  if (!options.force && (target->info || target->is_link))
    return fail("the file of --trace exists already", trace, "add -f to overwrite it");
  if (target->info && RunFiles({}).holds(*target->info))
    return fail("--trace names the file of a standard descriptor", trace, "name another file");
  return {};
}

Result<TimeLineFile> TimeLineFile::open(const Options& options) {
  auto file = OutputFile::create(*options.trace, options.force);
  if (!file) return tl::unexpected(file.error());
  return TimeLineFile(std::move(*file));
}

Result<void> TimeLineFile::write(std::string_view json, RunFiles& run) {
  const auto existing = file_.existing();
  if (file_.is_new_file() && existing && run.holds(*existing))
    return fail("the time line is lost: an input or an output of the run lies in its place", file_.name());
  format::DescriptorSink sink(file_.descriptor(), file_.name());
  const format::Bytes bytes(reinterpret_cast<const uint8_t*>(json.data()), json.size());
  return sink.write(bytes).and_then([&] { return file_.commit(); });
}

}  // namespace ptxkit::pack
