// Ranks come from longest paths, the order within a rank from barycentres, swept down and up. Isotonic regression then
// finds the positions closest to the neighbours' that keep order and gaps. A back edge has its own lane beside the
// boxes, from the rank of its target to that of its source.
#include "analyzer/inspect/layers.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ptxkit::inspect {
namespace {

constexpr int kOrderSweeps = 12, kPlaceSweeps = 10;
constexpr double kLaneWidth = 10;
constexpr size_t kMostCrossings = 200'000;  // of ranks by edges that have lanes

// A box, or the point where an edge crosses a rank.
struct Node {
  uint32_t rank = 0;
  double width = 0;
  double x = 0;
  std::vector<uint32_t> above, below;
  uint32_t back_edge_box = UINT32_MAX;  // box of this rank that the end of a back edge's lane stays close to
};

class Layout {
 public:
  Layout(Drawing& drawing, double gap_x, double gap_y) : drawing_(drawing), gap_x_(gap_x), gap_y_(gap_y) {}

  void run() {
    if (drawing_.boxes.empty()) return;
    rank_boxes();
    route_edges();
    order_ranks();
    place();
    write_back();
  }

 private:
  void rank_boxes() {
    nodes_.resize(drawing_.boxes.size());
    for (size_t i = 0; i < nodes_.size(); ++i) nodes_[i].width = drawing_.boxes[i].width;
    std::vector<std::vector<uint32_t>> successors(nodes_.size());
    for (const Edge& edge : drawing_.edges) {
      if (!edge.is_back) successors[edge.from].push_back(edge.to);
    }
    for (const uint32_t box : drawing_.order) {
      for (const uint32_t to : successors[box]) nodes_[to].rank = std::max(nodes_[to].rank, nodes_[box].rank + 1);
    }
    uint32_t last = 0;
    for (const Node& node : nodes_) last = std::max(last, node.rank);
    ranks_.resize(last + 1);
    for (const uint32_t box : drawing_.order) ranks_[nodes_[box].rank].push_back(box);
  }

  uint32_t add_lane(uint32_t rank) {
    nodes_.push_back({rank, kLaneWidth, 0, {}, {}, UINT32_MAX});
    ranks_[rank].push_back(static_cast<uint32_t>(nodes_.size() - 1));
    return ranks_[rank].back();
  }

  void link(uint32_t above, uint32_t below) {
    nodes_[above].below.push_back(below);
    nodes_[below].above.push_back(above);
  }

  uint32_t crossings_of(const Edge& edge) const {
    const uint32_t from = nodes_[edge.from].rank, to = nodes_[edge.to].rank;
    return from < to ? to - from - 1 : from - to + 1;
  }

  // The most ranks that an edge with a lane may cross, so that all lanes together cross kMostCrossings at most.
  uint32_t longest_lane() const {
    std::vector<uint32_t> lengths;
    for (const Edge& edge : drawing_.edges) lengths.push_back(crossings_of(edge));
    std::ranges::sort(lengths);
    size_t crossed = 0;
    for (const uint32_t length : lengths) {
      crossed += length;
      if (crossed > kMostCrossings) return length - 1;
    }
    return UINT32_MAX;
  }

  void route_edges() {
    const uint32_t longest = longest_lane();
    for (Edge& edge : drawing_.edges) {
      std::vector<uint32_t> lane;
      const uint32_t from_rank = nodes_[edge.from].rank, to_rank = nodes_[edge.to].rank;
      // An edge into an irreducible loop may run against the order but still lead downwards.
      if (to_rank > from_rank) edge.is_back = false;
      if (crossings_of(edge) > longest) {
        lanes_.emplace_back();
        continue;
      }
      if (edge.is_back) {
        for (uint32_t rank = to_rank; rank <= from_rank; ++rank) {
          lane.push_back(add_lane(rank));
          if (lane.size() > 1) link(lane[lane.size() - 2], lane.back());
        }
        nodes_[lane.front()].back_edge_box = edge.to;
        nodes_[lane.back()].back_edge_box = edge.from;
      } else {
        uint32_t above = edge.from;
        for (uint32_t rank = from_rank + 1; rank < to_rank; ++rank) {
          lane.push_back(add_lane(rank));
          link(above, lane.back());
          above = lane.back();
        }
        link(above, edge.to);
      }
      lanes_.push_back(std::move(lane));
    }
  }

  void order_ranks() {
    std::vector<double> position(nodes_.size());
    const auto number = [&](const std::vector<uint32_t>& rank) {
      for (size_t i = 0; i < rank.size(); ++i) position[rank[i]] = static_cast<double>(i);
    };
    for (const auto& rank : ranks_) number(rank);
    for (int sweep = 0; sweep < kOrderSweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t i = 0; i < ranks_.size(); ++i) {
        std::vector<uint32_t>& rank = ranks_[down ? i : ranks_.size() - 1 - i];
        std::vector<std::pair<double, uint32_t>> keys;
        for (const uint32_t id : rank) {
          const std::vector<uint32_t>& neighbours = down ? nodes_[id].above : nodes_[id].below;
          double key = position[id];
          if (!neighbours.empty()) {
            key = 0;
            for (const uint32_t neighbour : neighbours) key += position[neighbour];
            key /= static_cast<double>(neighbours.size());
          } else if (nodes_[id].back_edge_box != UINT32_MAX) {
            key = position[nodes_[id].back_edge_box] + 0.5;
          }
          keys.emplace_back(key, id);
        }
        std::ranges::stable_sort(keys, {}, [](const auto& key) { return key.first; });
        for (size_t k = 0; k < keys.size(); ++k) rank[k] = keys[k].second;
        number(rank);
      }
    }
  }

  // The least distance between the centres of neighbours in a rank.
  double separation(uint32_t left, uint32_t right) const {
    return (nodes_[left].width + nodes_[right].width) / 2 + gap_x_;
  }

  // Places the nodes of a rank as close to `wanted` as their order and gaps allow (least squares, pool adjacent
  // violators).
  void place_rank(const std::vector<uint32_t>& rank, const std::vector<double>& wanted) {
    struct Pool {
      double sum;
      size_t count;
      double mean() const { return sum / static_cast<double>(count); }
    };
    std::vector<Pool> pools;
    std::vector<double> offsets;
    double offset = 0;
    for (size_t i = 0; i < rank.size(); ++i) {
      if (i) offset += separation(rank[i - 1], rank[i]);
      offsets.push_back(offset);
      pools.push_back({wanted[i] - offset, 1});
      while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
        const Pool last = pools.back();
        pools.pop_back();
        pools.back().sum += last.sum;
        pools.back().count += last.count;
      }
    }
    size_t i = 0;
    for (const Pool& pool : pools) {
      for (size_t k = 0; k < pool.count; ++k, ++i) nodes_[rank[i]].x = pool.mean() + offsets[i];
    }
  }

  void place() {
    for (const auto& rank : ranks_) place_rank(rank, std::vector<double>(rank.size(), 0));
    for (int sweep = 0; sweep < kPlaceSweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t i = 0; i < ranks_.size(); ++i) {
        const std::vector<uint32_t>& rank = ranks_[down ? i : ranks_.size() - 1 - i];
        std::vector<double> wanted;
        for (const uint32_t id : rank) {
          const std::vector<uint32_t>& neighbours = down ? nodes_[id].above : nodes_[id].below;
          double sum = 0;
          for (const uint32_t neighbour : neighbours) sum += nodes_[neighbour].x;
          wanted.push_back(neighbours.empty() ? nodes_[id].x : sum / static_cast<double>(neighbours.size()));
        }
        place_rank(rank, wanted);
      }
    }
  }

  void write_back() {
    double left = 0, right = 0;
    for (const Node& node : nodes_) {
      left = std::min(left, node.x - node.width / 2);
      right = std::max(right, node.x + node.width / 2);
    }
    drawing_.width = right - left;
    std::vector<double> top(ranks_.size()), bottom(ranks_.size());
    double y = gap_y_ / 2;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      double height = 0;
      for (const uint32_t id : ranks_[rank]) {
        if (id < drawing_.boxes.size()) height = std::max(height, drawing_.boxes[id].height);
      }
      top[rank] = y;
      bottom[rank] = y + height;
      y += height + gap_y_;
    }
    drawing_.height = y - gap_y_ / 2;
    for (size_t i = 0; i < drawing_.boxes.size(); ++i) {
      drawing_.boxes[i].x = nodes_[i].x - left;
      drawing_.boxes[i].y = top[nodes_[i].rank];
    }
    for (size_t i = 0; i < drawing_.edges.size(); ++i) {
      Edge& edge = drawing_.edges[i];
      const Box& from = drawing_.boxes[edge.from];
      const Box& to = drawing_.boxes[edge.to];
      edge.points = {{from.x, from.y + from.height}};
      std::vector<uint32_t> lane = lanes_[i];
      if (edge.is_back) std::ranges::reverse(lane);
      for (const uint32_t id : lane) {
        const Point upper{nodes_[id].x - left, top[nodes_[id].rank]},
            lower{nodes_[id].x - left, bottom[nodes_[id].rank]};
        edge.points.push_back(edge.is_back ? lower : upper);
        edge.points.push_back(edge.is_back ? upper : lower);
      }
      edge.points.push_back({to.x, to.y});
    }
  }

  Drawing& drawing_;
  double gap_x_, gap_y_;
  std::vector<Node> nodes_;
  std::vector<std::vector<uint32_t>> ranks_;
  std::vector<std::vector<uint32_t>> lanes_;  // of each edge, top to bottom
};

}  // namespace

void lay_out(Drawing& drawing, double gap_x, double gap_y) { Layout(drawing, gap_x, gap_y).run(); }

}  // namespace ptxkit::inspect
