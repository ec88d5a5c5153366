#include "fkr_tests/fuzz/ptx_damage.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

namespace ptxkit::testing {
namespace {

struct Span {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%'; }

// The word or modifier around `at`, with a leading point or percent sign.
Span word_at(std::string_view text, size_t at) {
  Span word{at, at};
  while (word.begin > 0 && is_word(text[word.begin - 1])) --word.begin;
  while (word.end < text.size() && is_word(text[word.end])) ++word.end;
  if (word.begin > 0 && text[word.begin - 1] == '.') --word.begin;
  return word;
}

Span line_at(std::string_view text, size_t at) {
  const size_t before = at == 0 ? text.npos : text.rfind('\n', at - 1);
  return {before == text.npos ? 0 : before + 1, std::min(text.find('\n', at), text.size() - 1) + 1};
}

// Words with the same result are interchangeable: words of the same letters with any number; modifiers; numbers.
std::string kind_of(std::string_view word) {
  if (word.starts_with('.')) return ".";
  if (!word.empty() && std::isdigit(static_cast<unsigned char>(word.front()))) return "0";
  return std::string(word.substr(0, word.find_first_of("0123456789")));
}

// The lines that hold only a statement: no directive, label or brace.
std::vector<Span> statements_of(std::string_view text) {
  std::vector<Span> lines;
  for (size_t at = 0; at < text.size();) {
    const Span line = line_at(text, at);
    at = line.end;
    const size_t first = text.find_first_not_of(" \t", line.begin);
    const size_t last = text.find_last_not_of(" \t\n", line.end - 1);
    if (first >= line.end || last == text.npos || last < first || text[last] != ';') continue;
    if (text[first] == '@' || std::isalpha(static_cast<unsigned char>(text[first]))) lines.push_back(line);
  }
  return lines;
}

// A random word of the line; nothing if the search finds none.
std::optional<Span> some_word(std::string_view text, Span line, std::mt19937& random) {
  const size_t at = text.find_first_of("%0123456789.$", line.begin + random() % line.size());
  if (at >= line.end) return std::nullopt;
  const Span word = word_at(text, std::min(at + 1, text.size() - 1));
  return word.size() == 0 ? std::nullopt : std::optional(word);
}

void replace_word(std::string& text, const std::vector<Span>& lines, std::mt19937& random) {
  constexpr int kTries = 50;
  const auto word = some_word(text, lines[random() % lines.size()], random);
  if (!word) return;
  const std::string old = text.substr(word->begin, word->size());
  if (std::isdigit(static_cast<unsigned char>(old.front())) && random() % 2 == 0) {
    static constexpr std::string_view kNumbers[] = {
        "0", "1", "3", "31", "32", "-1", "255", "4096", "65535", "2147483647", "0xffffffff", "0x8000000000000000"};
    text.replace(word->begin, word->size(), kNumbers[random() % std::size(kNumbers)]);
    return;
  }
  for (int i = 0; i < kTries; ++i) {
    const auto other = some_word(text, lines[random() % lines.size()], random);
    if (!other) continue;
    const std::string candidate = text.substr(other->begin, other->size());
    if (candidate == old || kind_of(candidate) != kind_of(old)) continue;
    text.replace(word->begin, word->size(), candidate);
    return;
  }
}

void guard(std::string& text, Span line, std::mt19937& random) {
  const size_t first = text.find_first_not_of(" \t", line.begin);
  if (text[first] == '@') {
    text.erase(first, text.find_first_of(" \t", first) - first);
    return;
  }
  const size_t named = text.find("%p", random() % text.size());
  if (named == text.npos) return;
  const Span predicate = word_at(text, named);
  text.insert(first, (random() % 2 ? "@!" : "@") + text.substr(predicate.begin, predicate.size()) + " ");
}

}  // namespace

std::vector<std::string> ptx_files(const std::string& folder, size_t max_bytes) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".ptx") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> all;
  for (const auto& path : paths) {
    std::ifstream stream(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(stream), {}};
    if (text.size() < max_bytes) all.push_back(std::move(text));
  }
  return all;
}

std::string damage_bytes(std::string text, const std::vector<std::string>& all, std::mt19937& random) {
  for (auto change = 1 + random() % 6; change != 0 && !text.empty(); --change) {
    const size_t at = random() % text.size();
    const size_t length = std::min<size_t>(1 + random() % 40, text.size() - at);
    switch (random() % 8) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text[at] = ".,;:{}[]()<>+-!|@=%_\"/\n0 "[random() % 25];
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.resize(at);
        break;
      case 4:
        text.insert(at, text.substr(random() % text.size(), length));
        break;
      case 5: {
        const std::string& other = all[random() % all.size()];
        text.insert(at, other.substr(random() % other.size(), length));
        break;
      }
      case 6:
        text.replace(at, length, std::to_string(random()));
        break;
      case 7:
        text.insert(at, std::string(1 + random() % 8, text[at]));
        break;
    }
  }
  return text;
}

std::string damage_words(std::string text, const std::string& other, std::mt19937& random) {
  for (auto change = 1 + random() % 6; change != 0; --change) {
    const std::vector<Span> lines = statements_of(text);
    if (lines.empty()) break;
    const Span line = lines[random() % lines.size()];
    const std::string copy = text.substr(line.begin, line.size());
    switch (random() % 16) {
      case 0:
      case 1:
        text.erase(line.begin, line.size());
        break;
      case 2:
      case 3:
        text.insert(lines[random() % lines.size()].begin, copy);
        break;
      case 4: {
        const Span next = lines[random() % lines.size()];
        if (next.begin < line.end) break;
        text.insert(next.begin, copy);
        text.erase(line.begin, line.size());
        break;
      }
      case 5:
      case 6:
        guard(text, line, random);
        break;
      case 7: {
        const std::vector<Span> strange = statements_of(other);
        if (strange.empty()) break;
        const Span from = strange[random() % strange.size()];
        text.insert(line.begin, other.substr(from.begin, from.size()));
        break;
      }
      default:
        replace_word(text, lines, random);
    }
  }
  return text;
}

}  // namespace ptxkit::testing
