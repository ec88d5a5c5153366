// Checked builds: a pointer knows the object that it came from, and every access through it that leaves the object
// traps on the author's line. Release builds have no checks: the emulator's sanitizer finds accesses outside of the
// buffer, and accesses outside of only a part of it are not noticed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fkr_tests/unit/builder/emulate.hpp"

namespace ptxkit::dsl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::InWords;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::OutWords;
using testing::run;
using testing::Words;

constexpr EmitOptions kChecked{.variant = Variant::checked};

// Set on the line before the one on which a body is expected to trap.
u32 expected_line = 0;
void next_line_leaves(Where where = Where::current()) { expected_line = where.line() + 1; }

enum class InRelease { faults, unseen };

// Runs `body` with 64 threads over 64 words of input and of output.
using Body = std::function<void(Kernel&, const InWords& in, const OutWords& out)>;
void expect_trap(const Body& body, InRelease released = InRelease::faults) {
  const auto report = [&](const EmitOptions& emit) {
    return run([&](Kernel& k, const InWords& in, const InWords&, const OutWords& out) { body(k, in, out); }, Words(64),
               Words(64), {.emit = emit})
        .report;
  };
  const std::string checked = report(kChecked), release = report({});
  const std::string line = "object_test.cpp:" + std::to_string(expected_line);
  EXPECT_THAT(checked, AllOf(HasSubstr("trap"), HasSubstr(line)));
  if (released == InRelease::faults) {
    EXPECT_THAT(release, AllOf(Not(IsEmpty()), Not(HasSubstr("trap")), HasSubstr(line)));
  } else {
    EXPECT_THAT(release, IsEmpty());
  }
}

// --- every kind of access ---

TEST(Objects, OfAPointerFromANumber) {
  expect_trap(
      [](Kernel& k, const InWords& in, const OutWords& out) {
        const auto object = at_address<read_only, u64>(in.data().address()).align_down<8>().within(63);
        next_line_leaves();
        const auto x = object.at(k.thread()).load();
        out.store(k.thread(), x);
      },
      InRelease::unseen);
}

TEST(Objects, Loads) {
  expect_trap([](Kernel& k, const InWords& in, const OutWords& out) {
    next_line_leaves();
    const auto x = in.data().at(k.thread() + 1).load();
    out.store(k.thread(), x);
  });
  expect_trap([](Kernel& k, const InWords& in, const OutWords& out) {
    next_line_leaves();
    const auto x = in.data().as<u32>().at(k.thread() * 2 + 2).load();
    out.store(k.thread(), zext<u64>(x));
  });
  expect_trap([](Kernel& k, const InWords& in, const OutWords& out) {
    const auto pairs = in.data().assume_aligned<16>("allocations are");
    next_line_leaves();
    const auto pair = pairs.at(times<2>(k.thread())).load_vector<2>();
    out.store(k.thread(), pair[0] + pair[1]);
  });
}

TEST(Objects, Stores) {
  expect_trap([](Kernel& k, const InWords&, const OutWords& out) {
    next_line_leaves();
    out.data().at(k.thread() + 1).store(7);
  });
  expect_trap([](Kernel& k, const InWords&, const OutWords& out) {
    next_line_leaves();
    out.data().at(k.thread() + 1).store_as<u16>(7);
  });
  expect_trap([](Kernel& k, const InWords&, const OutWords& out) {
    const auto pairs = out.data().assume_aligned<16>("allocations are");
    const auto zero = k.constant<u64>(0);
    next_line_leaves();
    pairs.at(times<2>(k.thread())).store_vector(std::array{zero, zero});
  });
}

TEST(Objects, BytewiseAndUnalignedReads) {
  expect_trap([](Kernel& k, const InWords& in, const OutWords& out) {
    next_line_leaves();
    const auto x = in.data().as<u8>().at(k.thread() * 8 + 5).load_bytewise<u32>();
    out.store(k.thread(), zext<u64>(x));
  });
  expect_trap([](Kernel& k, const InWords& in, const OutWords& out) {
    next_line_leaves();
    const auto x = in.data().as<u8>().at(k.thread() * 8 + 5).load_unaligned_u32();
    out.store(k.thread(), zext<u64>(x));
  });
}

TEST(Objects, Atomics) {
  expect_trap([](Kernel& k, const InWords&, const OutWords& out) {
    next_line_leaves();
    atomic_add(out.data().at(k.thread() + 1), 1, Order::relaxed, Scope::gpu);
  });
  expect_trap([](Kernel& k, const InWords&, const OutWords& out) {
    next_line_leaves();
    atomic_compare_exchange(out.data().at(k.thread() + 1), 0, 1, Order::relaxed, Scope::gpu);
  });
  expect_trap([](Kernel& k, const InWords&, const OutWords& out) {
    next_line_leaves();
    atomic_max_if(k.thread() > 7, out.data().at(k.thread() + 1), 1, Order::relaxed, Scope::gpu);
  });
  expect_trap([](Kernel& k, const InWords&, const OutWords& out) {
    next_line_leaves();
    atomic_store(out.data().at(k.thread() + 1), 1, Order::relaxed, Scope::gpu);
  });
  expect_trap([](Kernel& k, const InWords&, const OutWords& out) {
    next_line_leaves();
    const auto x = atomic_load(out.data().at(k.thread() + 1), Order::relaxed, Scope::gpu);
    out.store(k.thread(), x);
  });
}

TEST(Objects, Prefetches) {
  const Body beyond = [](Kernel& k, const InWords& in, const OutWords&) {
    next_line_leaves();
    in.data().at(k.thread() + 1).prefetch_l2();
  };
  expect_trap(beyond, InRelease::unseen);
}

// --- every way a pointer moves ---

TEST(Objects, AreKeptThroughArithmeticAndCasts) {
  expect_trap([](Kernel& k, const InWords& in, const OutWords& out) {
    next_line_leaves();
    const auto x = in.data().at(bitcast<i32>(k.thread()) - 1).load();
    out.store(k.thread(), x);
  });
  expect_trap([](Kernel& k, const InWords& in, const OutWords& out) {
    const auto last = in.data().at(k.thread()).at(3).at<-2>();
    next_line_leaves();
    const auto x = last.load();
    out.store(k.thread(), x);
  });
  expect_trap([](Kernel& k, const InWords& in, const OutWords& out) {
    const auto rounded = in.data().as<u8>().at(k.thread() * 8 + 9).align_down<8>();
    next_line_leaves();
    const auto x = rounded.as<u64>().load();
    out.store(k.thread(), x);
  });
}

TEST(Objects, MayBeLeftByAPointerThatComesBack) {
  const auto there_and_back = [](Kernel& k, const InWords& in, const InWords&, const OutWords& out) {
    out.store(k.thread(), in.data().at(k.thread() + 1000).at<-1000>().load());
  };
  EXPECT_THAT(run(there_and_back, Words(64), Words(64), {.emit = kChecked}).report, IsEmpty());
}

// An index whose product wraps points into the object again, where no sanitizer notices it.
TEST(Objects, AreLeftByAnIndexThatWraps) {
  expect_trap(
      [](Kernel& k, const InWords& in, const OutWords& out) {
        const auto words = k.shared<u64, 64, 8>("words");
        words.store(k.thread(), in.load(k.thread()));
        k.sync_warp();
        next_line_leaves();
        const auto x = words.load(k.thread() + 0x20000000);
        out.store(k.thread(), x);
      },
      InRelease::unseen);
  expect_trap(
      [](Kernel& k, const InWords& in, const OutWords& out) {
        next_line_leaves();
        const auto x = in.load(zext<u64>(k.thread()) | k.constant<u64>(u64{1} << 61));
        out.store(k.thread(), x);
      },
      InRelease::unseen);
  expect_trap(
      [](Kernel& k, const InWords& in, const OutWords& out) {
        next_line_leaves();
        const auto x = in.load(cast<i64>(k.thread()) - k.constant<i64>(i64{1} << 61));
        out.store(k.thread(), x);
      },
      InRelease::unseen);
}

// --- every kind of object ---

TEST(Objects, AreArrays) {
  expect_trap([](Kernel& k, const InWords& in, const OutWords& out) {
    const auto words = k.shared<u64, 64, 8>("words");
    words.store(k.thread(), in.load(k.thread()));
    next_line_leaves();
    const auto x = words.data().at(k.thread() + 64).load();
    out.store(k.thread(), x);
  });
  expect_trap([](Kernel& k, const InWords&, const OutWords& out) {
    const auto mine = k.local<u64, 4>("mine");
    unrolled<4>([&](auto i) { mine.store(i, zext<u64>(k.thread() * i)); });
    next_line_leaves();
    const auto x = mine.data().at(k.thread()).load();
    out.store(k.thread(), x);
  });
}

TEST(Objects, ArePartsOfThem) {
  expect_trap(
      [](Kernel& k, const InWords& in, const OutWords& out) {
        const auto part = in.slice(8, 8);
        next_line_leaves();
        const auto x = part.data().at(k.thread() & 15).load();
        out.store(k.thread(), x);
      },
      InRelease::unseen);
  expect_trap(
      [](Kernel& k, const InWords& in, const OutWords& out) {
        const auto part = in.data().at(8).within(8);
        next_line_leaves();
        const auto x = part.at(bitcast<i32>(k.thread() & 7) - 1).load();
        out.store(k.thread(), x);
      },
      InRelease::unseen);
  expect_trap(
      [](Kernel& k, const InWords& in, const OutWords& out) {
        const Span part(in.data().at(8), k.constant<u32>(8));
        next_line_leaves();
        const auto x = part.load(k.thread() & 15);
        out.store(k.thread(), x);
      },
      InRelease::unseen);
}

// The bytes that aligned reads of an object's end touch may belong to it, and no more.
TEST(Objects, EndAtTheNextGranule) {
  expect_trap(
      [](Kernel& k, const InWords& in, const OutWords& out) {
        const auto five_words = in.data().as<u8>().within<16>(33).as<u64>();
        out.store(k.thread(), five_words.at(5).load());
        next_line_leaves();
        const auto x = five_words.at(6).load();
        out.store(k.thread(), x);
      },
      InRelease::unseen);
}

TEST(Objects, StayInsideTheirObject) {
  expect_trap(
      [](Kernel& k, const InWords& in, const OutWords& out) {
        next_line_leaves();
        const auto part = in.data().at(60).within(5);
        out.store(k.thread(), part.load());
      },
      InRelease::unseen);
  expect_trap(
      [](Kernel& k, const InWords& in, const OutWords& out) {
        next_line_leaves();
        const auto part = in.slice(k.thread(), 2);
        out.store(k.thread(), part.load(0));
      },
      InRelease::unseen);
}

}  // namespace
}  // namespace ptxkit::dsl
