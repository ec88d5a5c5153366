// SA-IS, suffix sorting by induction: G. Nong, S. Zhang, W. H. Chan, "Two Efficient Algorithms for Linear Time Suffix
// Array Construction", IEEE Transactions on Computers 60(10), 2011.
//
// A suffix is of type S if it is smaller than the next one, otherwise of type L. The leftmost S suffix of a run is an
// LMS suffix. The sorted LMS suffixes induce the order of the L suffixes in a pass from left to right, and these induce
// the order of the S suffixes in a pass from right to left. The LMS suffixes are sorted by their substrings up to the
// next one and named by rank. If two have the same name, the suffixes of the string of names are sorted recursively.
#include "kernels/bwt/suffix_sort.hpp"

#include <algorithm>

namespace ptxkit::kernels {
namespace {

constexpr uint32_t kNone = ~0u;

template <class Symbol>
class SuffixSorter {
 public:
  SuffixSorter(std::span<const Symbol> text, uint32_t alphabet, std::span<uint32_t> order)
      : text_(text), order_(order), starts_(alphabet + 1), is_s_(text.size() + 1) {
    const size_t n = text.size();
    is_s_[n] = true;  // the empty suffix
    for (size_t i = n - 1; i-- > 0;) is_s_[i] = text[i] < text[i + 1] || (text[i] == text[i + 1] && is_s_[i + 1]);
    for (const Symbol symbol : text) ++starts_[symbol + 1];
    for (size_t symbol = 1; symbol < starts_.size(); ++symbol) starts_[symbol] += starts_[symbol - 1];
  }

  void sort() {
    std::vector<uint32_t> lms;
    for (uint32_t i = 1; i < text_.size(); ++i) {
      if (is_lms(i)) lms.push_back(i);
    }
    induce(lms);
    if (lms.size() < 2) return;
    induce(sorted(lms));
  }

 private:
  bool is_lms(uint32_t i) const { return i != 0 && is_s_[i] && !is_s_[i - 1]; }

  // Puts `lms` at the ends of their buckets, in order, and induces the order of the other suffixes.
  void induce(const std::vector<uint32_t>& lms) {
    std::fill(order_.begin(), order_.end(), kNone);
    std::vector<uint32_t> at(starts_.begin() + 1, starts_.end());  // ends of the buckets
    for (auto i = lms.rbegin(); i != lms.rend(); ++i) order_[--at[text_[*i]]] = *i;

    std::copy(starts_.begin(), starts_.end() - 1, at.begin());
    const auto last = static_cast<uint32_t>(text_.size() - 1);
    order_[at[text_[last]]++] = last;  // induced by the empty suffix
    for (size_t row = 0; row < order_.size(); ++row) {
      const uint32_t i = order_[row];
      if (i != kNone && i != 0 && !is_s_[i - 1]) order_[at[text_[i - 1]]++] = i - 1;
    }
    std::copy(starts_.begin() + 1, starts_.end(), at.begin());
    for (size_t row = order_.size(); row-- > 0;) {
      const uint32_t i = order_[row];
      if (i != kNone && i != 0 && is_s_[i - 1]) order_[--at[text_[i - 1]]] = i - 1;
    }
  }

  bool same_substring(uint32_t a, uint32_t b) const {
    for (uint32_t i = 0;; ++i) {
      // only one of the substrings ends with the text
      if (a + i == text_.size() || b + i == text_.size()) return false;
      if (text_[a + i] != text_[b + i] || is_s_[a + i] != is_s_[b + i]) return false;
      if (i != 0 && (is_lms(a + i) || is_lms(b + i))) return is_lms(a + i) && is_lms(b + i);
    }
  }

  // Returns `lms` in the order of the suffixes. Their substrings must be in order in order_.
  std::vector<uint32_t> sorted(const std::vector<uint32_t>& lms) const {
    std::vector<uint32_t> name_at(text_.size(), kNone);
    uint32_t names = 0, before = kNone;
    for (const uint32_t i : order_) {
      if (!is_lms(i)) continue;
      if (before != kNone && !same_substring(before, i)) ++names;
      name_at[i] = names;
      before = i;
    }
    ++names;
    std::vector<uint32_t> result(lms.size());
    if (names == lms.size()) {
      for (const uint32_t i : lms) result[name_at[i]] = i;
      return result;
    }
    std::vector<uint32_t> text(lms.size());
    for (size_t i = 0; i < lms.size(); ++i) text[i] = name_at[lms[i]];
    SuffixSorter<uint32_t>(text, names, result).sort();
    for (uint32_t& place : result) place = lms[place];
    return result;
  }

  std::span<const Symbol> text_;
  std::span<uint32_t> order_;
  std::vector<uint32_t> starts_;  // the start of each symbol's bucket, and the end of the last
  std::vector<bool> is_s_;
};

}  // namespace

std::vector<uint32_t> sort_suffixes(std::span<const uint8_t> text) {
  std::vector<uint32_t> order(text.size());
  if (!text.empty()) SuffixSorter<uint8_t>(text, 256, order).sort();
  return order;
}

}  // namespace ptxkit::kernels
