// See edit_script.hpp. The furthest points of every round are kept for backtracking, so memory grows with the square of
// the number of edits.
#include "analyzer/inspect/edit_script.hpp"

#include <algorithm>

namespace ptxkit::inspect {
namespace {

constexpr int64_t kMaxEdits = 3000;

// Matches the part between the common head and tail.
void match_middle(std::span<const std::string> before, std::span<const std::string> after, uint32_t offset,
                  std::vector<Match>& matches) {
  const auto rows = static_cast<int64_t>(before.size()), columns = static_cast<int64_t>(after.size());
  const int64_t most = std::min(rows + columns, kMaxEdits);
  // furthest[most + k]: the row that this many edits reach on diagonal k (row minus column).
  std::vector<int64_t> furthest(static_cast<size_t>(2 * most + 2), 0);
  std::vector<std::vector<int64_t>> rounds;
  const auto at = [&](std::vector<int64_t>& line, int64_t k) -> int64_t& {
    return line[static_cast<size_t>(most + k)];
  };
  int64_t edits = -1;
  for (int64_t d = 0; d <= most && edits < 0; ++d) {
    rounds.push_back(furthest);
    for (int64_t k = -d; k <= d; k += 2) {
      const bool inserts = k == -d || (k != d && at(furthest, k - 1) < at(furthest, k + 1));
      int64_t row = inserts ? at(furthest, k + 1) : at(furthest, k - 1) + 1;
      while (row < rows && row - k < columns && row - k >= 0 &&
             before[static_cast<size_t>(row)] == after[static_cast<size_t>(row - k)]) {
        ++row;
      }
      at(furthest, k) = row;
      if (row >= rows && row - k >= columns) {
        edits = d;
        break;
      }
    }
  }
  if (edits < 0) return;
  std::vector<Match> reversed;
  int64_t row = rows, column = columns;
  for (int64_t d = edits; d >= 0; --d) {
    std::vector<int64_t>& line = rounds[static_cast<size_t>(d)];
    const int64_t k = row - column;
    const bool inserts = k == -d || (k != d && at(line, k - 1) < at(line, k + 1));
    const int64_t before_row = d == 0 ? 0 : inserts ? at(line, k + 1) : at(line, k - 1);
    const int64_t before_column = d == 0 ? 0 : before_row - (inserts ? k + 1 : k - 1);
    while (row > before_row && column > before_column) {
      --row, --column;
      reversed.push_back({offset + static_cast<uint32_t>(row), offset + static_cast<uint32_t>(column)});
    }
    row = before_row;
    column = before_column;
  }
  matches.insert(matches.end(), reversed.rbegin(), reversed.rend());
}

}  // namespace

std::vector<Match> common_subsequence(std::span<const std::string> before, std::span<const std::string> after) {
  const size_t shorter = std::min(before.size(), after.size());
  size_t head = 0, tail = 0;
  while (head < shorter && before[head] == after[head]) ++head;
  while (tail < shorter - head && before[before.size() - 1 - tail] == after[after.size() - 1 - tail]) ++tail;
  std::vector<Match> matches;
  for (uint32_t i = 0; i < head; ++i) matches.push_back({i, i});
  match_middle(before.subspan(head, before.size() - head - tail), after.subspan(head, after.size() - head - tail),
               static_cast<uint32_t>(head), matches);
  for (size_t i = tail; i-- > 0;) {
    matches.push_back({static_cast<uint32_t>(before.size() - 1 - i), static_cast<uint32_t>(after.size() - 1 - i)});
  }
  return matches;
}

}  // namespace ptxkit::inspect
