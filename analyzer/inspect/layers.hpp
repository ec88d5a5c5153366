// Layered drawing of a directed graph: boxes in ranks, edges between ranks (K. Sugiyama, S. Tagawa, M. Toda, "Methods
// for Visual Understanding of Hierarchical System Structures", 1981). All lengths share one arbitrary unit.
#pragma once

#include <cstdint>
#include <vector>

namespace ptxkit::inspect {

struct Box {
  double width = 0, height = 0;
  double x = 0, y = 0;  // centre of the upper edge, set by lay_out
};

struct Point {
  double x = 0, y = 0;
};

struct Edge {
  uint32_t from = 0, to = 0;  // indices of boxes
  bool is_back = false;       // drawn upwards beside the boxes; lay_out clears it where the ranks lead downwards
  std::vector<Point> points;  // set by lay_out: from the lower edge of `from` to the upper edge of `to`
};

struct Drawing {
  std::vector<Box> boxes;  // every edge that is not `is_back` leads to a later place in `order`
  std::vector<uint32_t> order;
  std::vector<Edge> edges;
  double width = 0, height = 0;  // set by lay_out
};

// Sets the positions of boxes and edges. Time is linear in the boxes and in the ranks that edges cross. Where edges
// cross more than 200,000 ranks in all, the longest ones are straight lines.
void lay_out(Drawing& drawing, double gap_x, double gap_y);

}  // namespace ptxkit::inspect
