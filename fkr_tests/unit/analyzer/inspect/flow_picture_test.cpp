// The layout of boxes and edges, and the picture of a function.
#include "analyzer/inspect/flow_picture.hpp"

#include <cstdlib>
#include <random>

#include <gmock/gmock.h>

#include "analyzer/inspect/layers.hpp"
#include "fkr_tests/unit/analyzer/inspect/module.hpp"

namespace ptxkit::inspect {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Drawing random_drawing(unsigned seed) {
  std::mt19937 engine(seed);
  const auto random = [&] { return static_cast<uint32_t>(engine()); };
  Drawing drawing;
  const uint32_t count = 2 + random() % 40;
  for (uint32_t i = 0; i < count; ++i) {
    drawing.boxes.push_back({20.0 + random() % 200, 10.0 + random() % 90});
    drawing.order.push_back(i);
  }
  for (uint32_t from = 0; from < count; ++from) {
    for (unsigned edges = random() % 4; edges != 0; --edges) {
      const uint32_t to = random() % count;
      drawing.edges.push_back({from, to, to <= from, {}});
    }
  }
  return drawing;
}

TEST(Layers, BoxesKeepApartAndEdgesRunFromBoxToBox) {
  constexpr double kGapX = 10, kGapY = 20;
  for (unsigned seed = 0; seed < 200; ++seed) {
    Drawing drawing = random_drawing(seed);
    lay_out(drawing, kGapX, kGapY);
    for (size_t i = 0; i < drawing.boxes.size(); ++i) {
      const Box& a = drawing.boxes[i];
      EXPECT_GE(a.x - a.width / 2, -1e-6);
      EXPECT_LE(a.x + a.width / 2, drawing.width + 1e-6);
      EXPECT_LE(a.y + a.height, drawing.height + 1e-6);
      for (size_t k = i + 1; k < drawing.boxes.size(); ++k) {
        const Box& b = drawing.boxes[k];
        const bool beside = std::abs(a.x - b.x) >= (a.width + b.width) / 2 + kGapX - 1e-6;
        const bool apart = a.y + a.height <= b.y || b.y + b.height <= a.y;
        ASSERT_TRUE(beside || apart) << "boxes " << i << " and " << k << " of seed " << seed;
      }
    }
    for (const Edge& edge : drawing.edges) {
      const Box& from = drawing.boxes[edge.from];
      const Box& to = drawing.boxes[edge.to];
      ASSERT_GE(edge.points.size(), 2u);
      EXPECT_EQ(edge.points.front().y, from.y + from.height);
      EXPECT_EQ(edge.points.back().y, to.y);
      if (!edge.is_back) {
        EXPECT_LT(edge.points.front().y, edge.points.back().y);
      }
    }
  }
}

TEST(Layers, AChainIsStraight) {
  Drawing drawing{{{50, 10}, {80, 10}, {20, 10}}, {0, 1, 2}, {{0, 1, false, {}}, {1, 2, false, {}}}};
  lay_out(drawing, 10, 20);
  EXPECT_DOUBLE_EQ(drawing.boxes[0].x, drawing.boxes[1].x);
  EXPECT_DOUBLE_EQ(drawing.boxes[1].x, drawing.boxes[2].x);
}

constexpr const char* kLoop = R"(
.visible .entry k(.param .u32 n) {
  .reg .pred %p<3>; .reg .b32 %r<9>;
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
HEAD:
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, %r1;
  @%p1 bra HEAD;
  ret;
  mov.u32 %r3, 1;
  ret;
})";

TEST(FlowPicture, DotNamesBlocksAndEdges) {
  const auto result = parsed(kLoop);
  const std::string dot = flow_dot(result.module, result.module.functions[0]);
  EXPECT_THAT(dot, HasSubstr("digraph \"k\" {"));
  EXPECT_THAT(dot, HasSubstr("block 1, line 10-12, HEAD, loop depth 1\\l"));
  EXPECT_THAT(dot, HasSubstr("  b1 -> b1 [style=bold];\n  b1 -> b2;\n"));
  EXPECT_THAT(dot, HasSubstr("unreachable"));
}

TEST(FlowPicture, SvgTellsKindsOfBlocksAndEdgesApart) {
  const auto result = parsed(kLoop);
  const std::string svg = flow_svg(result.module, result.module.functions[0]);
  EXPECT_THAT(svg, HasSubstr("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_THAT(svg, HasSubstr("class=\"node head\" id=\"block1\""));
  EXPECT_THAT(svg, HasSubstr("class=\"node end\" id=\"block2\""));
  EXPECT_THAT(svg, HasSubstr("class=\"node dead\" id=\"block3\""));
  EXPECT_THAT(svg, HasSubstr("<path class=\"back\""));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_EQ(svg, flow_svg(result.module, result.module.functions[0])) << "the same bytes every time";
}

TEST(FlowPicture, LongBlocksAreCutButKeepTheirLastInstruction) {
  std::string body = ".visible .entry k() {\n.reg .b32 %r<3>;\n";
  for (int i = 0; i < 100; ++i) body += "mov.u32 %r1, " + std::to_string(i) + ";\n";
  const auto result = parsed(body + "ret;\n}\n");
  const std::string svg = flow_svg(result.module, result.module.functions[0]);
  EXPECT_THAT(svg, HasSubstr(">... 88 more</text>"));
  EXPECT_THAT(svg, HasSubstr(">ret;</text>"));
  EXPECT_THAT(svg, HasSubstr("mov.u32 %r1, 55;")) << "in the tooltip";
  EXPECT_THAT(svg, Not(HasSubstr(">mov.u32 %r1, 55;</text>")));
}

}  // namespace
}  // namespace ptxkit::inspect
