#include "analyzer/inspect/layers.hpp"

#include <cstdint>

#include <gtest/gtest.h>

namespace ptxkit::inspect {
namespace {

// A chain of boxes; each has an edge to the last one, too, and one back to the first.
Drawing chain(uint32_t count) {
  Drawing drawing;
  for (uint32_t i = 0; i < count; ++i) {
    drawing.boxes.push_back({.width = 10, .height = 10});
    drawing.order.push_back(i);
  }
  for (uint32_t i = 0; i + 1 < count; ++i) {
    drawing.edges.push_back({.from = i, .to = i + 1, .points = {}});
    drawing.edges.push_back({.from = i, .to = count - 1, .points = {}});
    drawing.edges.push_back({.from = i, .to = 0, .is_back = true, .points = {}});
  }
  lay_out(drawing, 5, 5);
  return drawing;
}

size_t points_of(const Drawing& drawing) {
  size_t points = 0;
  for (const Edge& edge : drawing.edges) points += edge.points.size();
  return points;
}

TEST(Layers, EdgesPassBoxesInLanes) {
  const Drawing drawing = chain(20);
  EXPECT_EQ(drawing.edges[1].points.size(), 2u + 2 * 18);  // from the first box to the last
  EXPECT_EQ(drawing.edges.back().points.size(), 2u + 2 * 19);
  EXPECT_TRUE(drawing.edges.back().is_back);
}

// The longest edges have no lanes then, so that memory does not grow with the square of the boxes.
TEST(Layers, OfManyBoxesHaveBoundedLanes) {
  const Drawing drawing = chain(3000);
  EXPECT_LE(points_of(drawing), 2 * drawing.edges.size() + 2 * 200'000);
  EXPECT_EQ(drawing.edges[1].points.size(), 2u);
  EXPECT_EQ(drawing.edges[drawing.edges.size() - 5].points.size(), 2u + 2);  // to the next box but one
  for (size_t i = 1; i < drawing.boxes.size(); ++i) EXPECT_LT(drawing.boxes[i - 1].y, drawing.boxes[i].y);
}

}  // namespace
}  // namespace ptxkit::inspect
