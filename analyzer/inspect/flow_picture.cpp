// See flow_picture.hpp.
#include "analyzer/inspect/flow_picture.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/dominators.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/inspect/layers.hpp"
#include "analyzer/ptx/print.hpp"
#include "support/printable.hpp"

namespace ptxkit::inspect {
namespace {

using flow::BlockId;

constexpr size_t kMaxLines = 14, kMaxColumns = 64;
constexpr double kColumnWidth = 6.65, kLineHeight = 14, kPadding = 8, kGapX = 28, kGapY = 44;

constexpr std::string_view kStyle = R"(
  .flow { --paper: #ffffff; --ink: #1f2328; --soft: #59636e; --line: #d1d9e0; --block: #f6f8fa; --head: #ddf4ff;
    --end: #dafbe1; --dead: #ffebe9; --taken: #0969da; --back: #8250df; }
  @media (prefers-color-scheme: dark) { .flow { --paper: #0d1117; --ink: #f0f6fc; --soft: #9198a1; --line: #3d444d;
    --block: #151b23; --head: #0c2d6b; --end: #033a16; --dead: #490202; --taken: #4493f8; --back: #ab7df8; } }
  @media print { .flow { --paper: #ffffff; --ink: #1f2328; --soft: #59636e; --line: #d1d9e0; --block: #f6f8fa;
    --head: #ddf4ff; --end: #dafbe1; --dead: #ffebe9; --taken: #0969da; --back: #8250df; } }
  .flow text { font: 11px ui-monospace, 'DejaVu Sans Mono', monospace; fill: var(--ink); white-space: pre; }
  .flow .title { font-weight: bold; fill: var(--soft); }
  .flow .paper { fill: var(--paper); }
  .flow rect.block { fill: var(--block); stroke: var(--line); }
  .flow .head rect.block { fill: var(--head); }
  .flow .end rect.block { fill: var(--end); }
  .flow .dead rect.block { fill: var(--dead); stroke-dasharray: 4 3; }
  .flow path { fill: none; stroke: var(--soft); stroke-width: 1.3; }
  .flow path.taken { stroke: var(--taken); }
  .flow path.back { stroke: var(--back); }
  .flow .tip { stroke: none; fill: var(--soft); }
  .flow .tip.taken { fill: var(--taken); }
  .flow .tip.back { fill: var(--back); }
)";

std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : printable(text)) {
    if (special.find(c) == special.npos) {
      out += c;
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += '\\';
      out += c;
    }
  }
  return out;
}

std::string for_xml(std::string_view text) { return escaped(text, "&<>"); }
std::string for_dot(std::string_view text) { return escaped(text, "\"\\"); }

class Picture {
 public:
  Picture(const ptx::Module& module, const ptx::Function& function)
      : module_(module),
        function_(function),
        graph_(function),
        loops_(graph_, flow::DominatorTree::dominators(graph_)) {}

  std::string dot() const {
    std::string out =
        fmt::format("digraph \"{}\" {{\n  node [shape=box, fontname=monospace];\n", for_dot(function_.name));
    for (BlockId id = 0; id < graph_.size(); ++id) {
      out += fmt::format("  b{} [label=\"{}\\l", id, for_dot(title(id)));
      for (const std::string& line : lines(id)) out += for_dot(line) + "\\l";
      out += graph_.is_reachable(id) ? "\"];\n" : "\", style=dashed];\n";
    }
    for (BlockId id = 0; id < graph_.size(); ++id) {
      const auto successors = graph_.successors(id);
      for (size_t i = 0; i < successors.size(); ++i) {
        out += fmt::format("  b{} -> b{}{};\n", id, successors[i], is_back(id, successors[i]) ? " [style=bold]" : "");
      }
    }
    return out + "}\n";
  }

  std::string svg(std::string_view id_prefix) const {
    Drawing drawing = this->drawing();
    lay_out(drawing, kGapX, kGapY);
    const double width = drawing.width + 2 * kGapX, height = drawing.height + 2 * kLineHeight;
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"flow\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
        "height=\"{1:.0f}\" role=\"img\">\n<title>control flow of {2}</title>\n<style>{3}</style>\n"
        "<rect class=\"paper\" width=\"{0:.0f}\" height=\"{1:.0f}\"/>\n"
        "<text class=\"title\" x=\"{4}\" y=\"{5}\">{2}</text>\n<g transform=\"translate({6} {7})\">\n",
        width, height, for_xml(function_.name), kStyle, kPadding, kLineHeight, kGapX, kLineHeight);
    for (const Edge& edge : drawing.edges) out += edge_svg(edge);
    for (BlockId id = 0; id < graph_.size(); ++id) out += block_svg(id, drawing.boxes[id], id_prefix);
    return out + "</g>\n</svg>\n";
  }

 private:
  // Against the order of the drawing: to a loop's head, or into an irreducible loop.
  bool is_back(BlockId from, BlockId to) const { return place(to) <= place(from); }

  // Reachable blocks in reverse postorder, then the others in program order.
  uint32_t place(BlockId id) const {
    return graph_.is_reachable(id) ? graph_.order_index(id)
                                   : static_cast<uint32_t>(graph_.reverse_postorder().size()) + id;
  }

  std::string title(BlockId id) const {
    const flow::Block& block = graph_.block(id);
    const auto line = [&](ptx::InstructionId instruction) {
      return module_.position(function_.instructions[instruction].at).line;
    };
    std::string text = fmt::format("block {}, line {}", id, line(block.first));
    if (line(block.end - 1) != line(block.first)) text += fmt::format("-{}", line(block.end - 1));
    for (const ptx::Label& label : function_.labels) {
      if (label.target == block.first) text += fmt::format(", {}", label.name);
    }
    const flow::LoopId loop = loops_.innermost(id);
    if (loop != flow::kNone) text += fmt::format(", loop depth {}", loops_.loop(loop).depth);
    if (!graph_.is_reachable(id)) text += ", unreachable";
    return text;
  }

  std::vector<std::string> lines(BlockId id) const {
    std::vector<std::string> all;
    for (ptx::InstructionId i = graph_.block(id).first; i < graph_.block(id).end; ++i) {
      all.push_back(ptx::print(module_, function_, function_.instructions[i]));
    }
    return all;
  }

  // What is shown of a block: its title, and its instructions as far as there is room, the last one always.
  std::vector<std::string> shown(BlockId id) const {
    std::vector<std::string> all = lines(id);
    if (all.size() > kMaxLines) {
      const size_t hidden = all.size() - kMaxLines + 1;
      all.erase(all.end() - static_cast<ptrdiff_t>(hidden) - 1, all.end() - 1);
      all.insert(all.end() - 1, fmt::format("... {} more", hidden));
    }
    all.insert(all.begin(), title(id));
    for (std::string& line : all) {
      if (line.size() > kMaxColumns) line = line.substr(0, kMaxColumns - 3) + "...";
    }
    return all;
  }

  Drawing drawing() const {
    Drawing drawing;
    for (BlockId id = 0; id < graph_.size(); ++id) {
      size_t columns = 0;
      const std::vector<std::string> text = shown(id);
      for (const std::string& line : text) columns = std::max(columns, line.size());
      drawing.boxes.push_back({static_cast<double>(columns) * kColumnWidth + 2 * kPadding,
                               static_cast<double>(text.size()) * kLineHeight + 2 * kPadding});
      drawing.order.push_back(id);
      for (const BlockId to : graph_.successors(id)) drawing.edges.push_back({id, to, is_back(id, to), {}});
    }
    std::ranges::sort(drawing.order, {}, [&](BlockId id) { return place(id); });
    return drawing;
  }

  std::string block_svg(BlockId id, const Box& box, std::string_view id_prefix) const {
    const bool is_head = loops_.innermost(id) != flow::kNone && loops_.loop(loops_.innermost(id)).header == id;
    const char* kind = !graph_.is_reachable(id) ? " dead" : is_head ? " head" : graph_.block(id).exits ? " end" : "";
    const double left = box.x - box.width / 2;
    std::string out = fmt::format("<g class=\"node{}\" id=\"{}block{}\"><title>", kind, id_prefix, id);
    for (const std::string& line : lines(id)) out += for_xml(line) + "\n";
    out += fmt::format(
        "</title><rect class=\"block\" rx=\"4\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{:.1f}\"/>\n",
        left, box.y, box.width, box.height);
    double y = box.y + kPadding + kLineHeight - 4;
    for (const std::string& line : shown(id)) {
      out +=
          fmt::format("<text{} x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                      y < box.y + kPadding + kLineHeight ? " class=\"title\"" : "", left + kPadding, y, for_xml(line));
      y += kLineHeight;
    }
    return out + "</g>\n";
  }

  // A branch that is taken is told from what falls through by its colour.
  std::string edge_svg(const Edge& edge) const {
    const auto successors = graph_.successors(edge.from);
    const bool is_taken = successors.size() > 1 && successors[0] == edge.to;
    const char* kind = edge.is_back ? "back" : is_taken ? "taken" : "next";
    const Point first = edge.points.front(), last = edge.points.back();
    std::string path = fmt::format("M{:.1f} {:.1f}", first.x, first.y);
    for (size_t i = 1; i < edge.points.size(); ++i) {
      const Point from = edge.points[i - 1], to = edge.points[i];
      // Both ends of a back edge turn around, so their handles point away from the boxes.
      const bool is_turn = edge.is_back && (i == 1 || i + 1 == edge.points.size());
      const double reach = is_turn ? kGapY / 2 : (to.y - from.y) / 2;
      const double leave = is_turn && i != 1 ? -reach : reach, arrive = is_turn && i == 1 ? -reach : reach;
      path += fmt::format(" C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", from.x, from.y + leave, to.x, to.y - arrive,
                          to.x, to.y);
    }
    return fmt::format(
        "<path class=\"{0}\" d=\"{1}\"/><polygon class=\"tip {0}\" points=\"{2:.1f},{3:.1f} {4:.1f},{5:.1f} "
        "{6:.1f},{5:.1f}\"/>\n",
        kind, path, last.x, last.y, last.x - 4, last.y - 7, last.x + 4);
  }

  const ptx::Module& module_;
  const ptx::Function& function_;
  flow::Graph graph_;
  flow::Loops loops_;
};

}  // namespace

std::string flow_dot(const ptx::Module& module, const ptx::Function& function) {
  return Picture(module, function).dot();
}

std::string flow_svg(const ptx::Module& module, const ptx::Function& function, std::string_view id_prefix) {
  return Picture(module, function).svg(id_prefix);
}

}  // namespace ptxkit::inspect
