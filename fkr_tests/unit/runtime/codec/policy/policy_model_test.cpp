// Tests the model of the policy: curves from measured runs, and how far the chosen side is from the better one.
#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "runtime/codec/policy/calibrate.hpp"
#include "runtime/codec/policy/choice.hpp"

namespace ptxkit::codec {
namespace {

// A side, with the figures measured on an H200 and on 16 CPU threads beside it: latency, first touch of buffers, and
// rate.
struct SideModel {
  double latency, new_bytes, new_each, each;
  double operator()(uint64_t bytes) const {
    const auto size = static_cast<double>(bytes);
    return latency + std::min(size, new_bytes) * new_each + size * each;
  }
};
constexpr SideModel kLiblz4{60e-6, 48e6, 0.5e-9, 0.4e-9}, kKernels{800e-6, 144e6, 0.05e-9, 0.355e-9},
    kFastKernels{800e-6, 144e6, 0.05e-9, 0.16e-9};
constexpr uint64_t kLongest = uint64_t{1} << 28;

std::vector<uint64_t> lengths() {
  std::vector<uint64_t> all;
  for (uint64_t length = 4096; length <= kLongest; length *= 4) all.push_back(length);
  return all;
}

Calibration of_curves(const MeasuredCurves& curves, double start) {
  return {"",
          16,
          {curves.cpu, curves.cpu, curves.cpu, curves.cpu},
          {curves.gpu, curves.gpu, curves.gpu, curves.gpu},
          start};
}

TEST(PolicyModel, IsWithinFivePercentOfTheBetterSide) {
  for (const SideModel& gpu : {kKernels, kFastKernels}) {
    const auto curves = measure_curves(lengths(), kLiblz4, gpu).value();
    for (const double start : {0.0, 0.3}) {
      const Calibration measured = of_curves(curves, start);
      int changes = 0;
      bool before = false;
      for (double length = 4096; length <= 4.4e9; length *= 1.07) {
        const auto bytes = static_cast<uint64_t>(length);
        const double cpu = kLiblz4(bytes), other = start + gpu(bytes);
        const bool chosen = measured.prefers_gpu(Work::compress, bytes);
        EXPECT_LE(chosen ? other : cpu, 1.05 * std::min(cpu, other)) << bytes;
        changes += chosen != before;
        before = chosen;
      }
      // The slow encoder never gains more than the start costs within 4 GiB: 45 ps a byte are 0.19 s.
      EXPECT_EQ(changes, gpu.each > 0.2e-9 && start > 0 ? 0 : 1);
    }
  }
}

// Noise as observed on the machines of docs/scheduling.md: the same stream took 9.2 ms once and 5.9 ms the next time,
// for as long as the disturbance lasted; occasional runs of half a millisecond took four times as long.
class Noise {
 public:
  explicit Noise(unsigned seed) : random_(seed) {}
  double operator()(double seconds) {
    if (random_() % 50 == 0) is_slow_ = !is_slow_;
    seconds *= is_slow_ ? 9.2 / 5.9 : 1;
    seconds *= 1 + 0.15 * static_cast<double>(random_() % 1024) / 1024;
    return random_() % 20 == 0 ? seconds + std::min(3 * seconds, 1.5e-3) : seconds;
  }
  // The mean time of a run.
  static double expected(double seconds) {
    const double usual = seconds * (1 + 9.2 / 5.9) / 2 * 1.075;
    return usual + std::min(3 * usual, 1.5e-3) / 20;
  }

 private:
  std::minstd_rand random_;
  bool is_slow_ = false;
};

TEST(PolicyModel, IsWithinFivePercentOfTheBetterSideAlsoWhereRunsAreUnsteady) {
  constexpr unsigned kCalibrations = 100;
  const SideModel scalar{60e-6, 48e6, 0.5e-9, 0.72e-9};  // the reproducible encoder on a CPU
  const SideModel decoder{40e-6, 48e6, 0.2e-9, 0.2e-9}, gpu_decoder{160e-6, 144e6, 0.05e-9, 0.24e-9};
  for (const auto& [cpu, gpu] : {std::pair(kLiblz4, kKernels), std::pair(kLiblz4, kFastKernels),
                                 std::pair(scalar, kFastKernels), std::pair(decoder, gpu_decoder)}) {
    std::vector<MeasuredCurves> calibrations;
    for (unsigned seed = 1; seed <= kCalibrations; ++seed) {
      Noise noise(seed);
      calibrations.push_back(measure_curves(
                                 lengths(), [&](uint64_t bytes) { return noise(cpu(bytes)); },
                                 [&](uint64_t bytes) { return noise(gpu(bytes)); })
                                 .value());
    }
    for (const double start : {0.0, 0.3}) {
      for (double length = 4096; length <= 4.4e9; length *= 1.3) {
        const auto bytes = static_cast<uint64_t>(length);
        const double on_cpu = Noise::expected(cpu(bytes)), on_gpu = start + Noise::expected(gpu(bytes));
        double lost = 0;
        for (const MeasuredCurves& curves : calibrations) {
          const bool chosen = of_curves(curves, start).prefers_gpu(Work::compress, bytes);
          lost += ((chosen ? on_gpu : on_cpu) / std::min(on_cpu, on_gpu) - 1) / kCalibrations;
        }
        EXPECT_LE(lost, 0.05) << bytes << " bytes, start " << start;
      }
    }
  }
}

// For batches, in a process that has started CUDA, whatever a calibration of streams says.
TEST(PolicyModel, RunsCorrectACalibrationThatIsWrong) {
  constexpr unsigned kProcesses = 40, kRuns = 300;
  constexpr uint64_t kBytes = 1 << 20;
  const auto at = [](double seconds) { return Curve({{kBytes, seconds}, {2 * kBytes, 2 * seconds}}); };
  const CodecJob job{.work = Work::compress, .raw_bytes = kBytes, .is_batch = true};
  for (const double kept : {0.3, 0.7, 0.95, 1.1, 1.5, 4.0}) {
    for (const double truth : {0.3, 0.7, 0.9, 1.1, 1.4, 3.0}) {
      const Curve cpu = at(1e-3), gpu = at(kept * 1e-3);
      double lost = 0;
      for (unsigned seed = 1; seed <= kProcesses; ++seed) {
        Noise noise(seed);
        Choice choice({"", 16, {cpu, cpu, cpu, cpu}, {gpu, gpu, gpu, gpu}, 0});
        double taken = 0, on_cpu = 0, on_gpu = 0;
        for (unsigned run = 0; run < kRuns; ++run) {
          const Side side = choice.choose(job);
          const double seconds = noise((side == Side::cpu ? 1 : truth) * 1e-3);
          choice.record_time(job, side, seconds);
          taken += seconds;
          on_cpu += noise(1e-3);
          on_gpu += noise(truth * 1e-3);
        }
        lost += (taken / std::min(on_cpu, on_gpu) - 1) / kProcesses;
      }
      EXPECT_LE(lost, 0.05) << "the GPU takes " << truth << " times as long, kept: " << kept;
    }
  }
}

constexpr uint64_t kMiB = 1 << 20;

// A sample that counts calls of look_ahead().
class CountingSource final : public format::ByteSource {
 public:
  CountingSource(Sample sample, uint64_t raw_bytes) : sample_(raw_bytes, sample) {}
  Result<size_t> read(format::MutableBytes into) override { return sample_.read(into); }
  size_t look_ahead(uint64_t at, format::MutableBytes into) const override {
    ++look_count;
    return sample_.look_ahead(at, into);
  }
  const std::string& name() const override { return sample_.name(); }

  mutable int look_count = 0;

 private:
  SampleSource sample_;
};

// Seconds for a GiB: the CPU's for runs and noise, the CPU's for text, the GPU's for either.
Calibration of_data(double plain, double text, double gpu) {
  const auto curve = [](double seconds) { return Curve({{kMiB, seconds / 1024}, {1024 * kMiB, seconds}}); };
  return {"",
          16,
          {curve(plain), curve(text), curve(text), curve(text)},
          {curve(gpu), curve(gpu), curve(gpu), curve(gpu)},
          0};
}

TEST(PolicyModel, AStreamGoesWhereItsDataIsFaster) {
  for (const uint64_t raw_bytes : {kMiB / 8, kMiB, 4 * kMiB, 1024 * kMiB}) {
    Choice choice(of_data(0.2, 1, 0.7));
    const CountingSource text(Sample::text, raw_bytes), plain(Sample::plain, raw_bytes),
        mixed(Sample::mixed, raw_bytes);
    const auto stream = [&](const CountingSource& source) {
      return CodecJob{.work = Work::compress, .raw_bytes = raw_bytes, .source = &source};
    };
    EXPECT_EQ(choice.choose(stream(text)), Side::gpu) << raw_bytes;
    EXPECT_EQ(choice.choose(stream(plain)), Side::cpu) << raw_bytes;
    // Up to 16 blocks the slowest one decides, beyond that their mean.
    EXPECT_EQ(choice.choose(stream(mixed)), raw_bytes <= kMiB ? Side::gpu : Side::cpu) << raw_bytes;
    EXPECT_GT(text.look_count, 0);
    // Other work is decided without a look at the data.
    CodecJob decompression = stream(text);
    decompression.work = Work::decompress;
    const int looks = text.look_count;
    EXPECT_EQ(choice.choose(decompression), Side::gpu);
    EXPECT_EQ(text.look_count, looks);
  }
  EXPECT_NEAR(of_data(0.2, 1, 0.7).cpu_seconds(Work::compress, 32 * kMiB), (0.2 + 0.8 / 3) / 32, 1e-9)
      << "nobody looks: a third of it is text";
}

// From more than four batches for each of the 16 threads on.
TEST(PolicyModel, OfALongStreamTheSlowestStageDecides) {
  const Calibration rates = of_data(0.2, 1, 0.7);
  for (const auto& [share, seconds] :
       {std::pair(0.0, 0.2), std::pair(0.15, 0.2), std::pair(0.3, 0.3), std::pair(1.0, 1.0)}) {
    EXPECT_NEAR(rates.cpu_seconds(Work::compress, 1024 * kMiB, {share, 1}), seconds, 1e-9) << share;
  }
  EXPECT_NEAR(rates.cpu_seconds(Work::compress, 64 * kMiB, {0.15, 1}), (0.2 + 0.15 * 0.8) / 16, 1e-9);
}

TEST(PolicyModel, AStreamIsNotLookedAtWhereThatChangesNothing) {
  for (const double gpu : {0.1, 1.5}) {
    Choice choice(of_data(0.2, 1, gpu));
    const CountingSource text(Sample::text, kMiB);
    EXPECT_EQ(choice.choose({.work = Work::compress, .raw_bytes = kMiB, .source = &text}),
              gpu < 1 ? Side::gpu : Side::cpu);
    EXPECT_EQ(text.look_count, 0);
  }
}

// Holds for any mixture of data whose time follows the model of effort, up to the longest measured stream.
TEST(PolicyModel, IsWithinFivePercentOfTheBetterSideForDataBetweenTheSamples) {
  const SideModel plain{60e-6, 48e6, 0.3e-9, 0.05e-9}, text = kLiblz4;
  const auto of_plain = measure_curves(lengths(), plain, kFastKernels).value();
  const auto of_text = measure_curves(lengths(), text, kFastKernels).value();
  const Calibration measured{"",
                             16,
                             {of_plain.cpu, of_text.cpu, of_text.cpu, of_text.cpu},
                             {of_plain.gpu, of_text.gpu, of_text.gpu, of_text.gpu},
                             0};
  int on_gpu = 0, on_cpu = 0;
  for (double length = 4096; length <= kLongest; length *= 1.07) {
    const auto bytes = static_cast<uint64_t>(length);
    for (int tenths = 0; tenths <= 10; ++tenths) {
      const double share = tenths / 10.0;
      const bool is_long = bytes > 64 * kMiB;
      const double cpu =
          is_long ? std::max(plain(bytes), share * text(bytes)) : std::lerp(plain(bytes), text(bytes), share);
      const double gpu = kFastKernels(bytes);
      const bool chosen = measured.prefers_gpu(Work::compress, bytes, {share, share});
      EXPECT_LE(chosen ? gpu : cpu, 1.05 * std::min(cpu, gpu)) << bytes << " bytes, effort " << share;
      ++(chosen ? on_gpu : on_cpu);
    }
  }
  EXPECT_GT(std::min(on_gpu, on_cpu), 200);
}

TEST(PolicyModel, MeansOfRunsInTurnCount) {
  std::string order;
  int run = 0;
  const auto curves = measure_curves(
      {1000, 2000},
      [&](uint64_t length) -> Result<double> {
        order += length == 1000 ? 'c' : 'C';
        // The first run of each length in a round is not counted.
        const int at = run++;
        return static_cast<double>(length) * (at % 2 == 0 ? 50 : at / 4 == 1 ? 7 : 1);
      },
      [&](uint64_t length) -> Result<double> {
        order += length == 1000 ? 'g' : 'G';
        return static_cast<double>(length);
      });
  EXPECT_EQ(order, "cgcgCGCGcgcgCGCGcgcgCGCG");
  EXPECT_EQ(curves->cpu.samples(), (std::vector<Curve::Sample>{{1000, 3000}, {2000, 6000}}));
  EXPECT_EQ(curves->gpu.samples(), (std::vector<Curve::Sample>{{1000, 1000}, {2000, 2000}}));
  // Short runs are repeated often.
  int runs = 0;
  const auto quick = [&](uint64_t) -> Result<double> { return ++runs, 1e-6; };
  EXPECT_TRUE(measure_curves({1, 2}, quick, quick));
  EXPECT_EQ(runs, 2 * 2 * 3 * (1 + 16));
  // Long runs are rare, because a second suffices; the first two lengths are measured in any case.
  runs = 0;
  const auto slow = [&](uint64_t length) -> Result<double> { return ++runs, static_cast<double>(length) / 1000; };
  EXPECT_EQ(measure_curves({5, 300, 2000, 3000}, slow, slow)->cpu.samples().size(), 2u);
  EXPECT_EQ(runs, 2 * 3 * (1 + 2) + 2 * 3 * (1 + 1));
  const auto lost = [](uint64_t) -> Result<double> { return fail("lost"); };
  EXPECT_EQ(measure_curves({1, 2}, quick, lost).error().what, "lost");
}

TEST(PolicyModel, ACurveIsLinesBetweenItsSamplesAndBeyond) {
  const Curve curve({{1000, 2}, {3000, 4}, {5000, 3}, {6000, 5}});  // 5000 contradicts 3000: a measurement error
  for (const auto& [bytes, seconds] :
       {std::pair(0, 2.0), std::pair(1000, 2.0), std::pair(2000, 2.75), std::pair(3000, 3.5), std::pair(4000, 3.5),
        std::pair(5000, 3.5), std::pair(6000, 5.0), std::pair(10000, 11.0)}) {
    EXPECT_DOUBLE_EQ(curve.seconds(static_cast<uint64_t>(bytes)), seconds) << bytes;
  }
  EXPECT_NEAR(curve.rate(), 1000 / 1.5, 1e-9);
  const Curve falling({{1, 4}, {2, 3}, {3, 2}, {4, 9}});
  EXPECT_EQ(falling.samples(), (std::vector<Curve::Sample>{{1, 3}, {2, 3}, {3, 3}, {4, 9}}));
  EXPECT_EQ(Curve().seconds(1 << 30), 0);
  EXPECT_TRUE(std::isinf(Curve().rate()));
}

Curve at_rate(double bytes_a_second) { return Curve({{1, 1 / bytes_a_second}, {1000, 1000 / bytes_a_second}}); }

TEST(PolicyModel, TheGpuHasToBeFasterByMoreThanFourPercent) {
  const Calibration rates{"",
                          16,
                          {at_rate(6e9), at_rate(6e9), at_rate(2e9), at_rate(24e9)},
                          {at_rate(45e9), at_rate(45e9), at_rate(45e9), at_rate(50e9)},
                          0.25};
  for (const Work work : {Work::compress, Work::compress_reproducible, Work::decompress}) {
    bool gpu_before = false;
    for (uint64_t bytes = 4096; bytes <= uint64_t{1} << 36; bytes *= 2) {
      const double cpu = rates.cpu_seconds(work, bytes), gpu = rates.gpu_seconds(work, bytes);
      const bool chosen = rates.prefers_gpu(work, bytes);
      EXPECT_EQ(chosen, gpu < 0.96 * cpu);
      EXPECT_LE(gpu_before, chosen) << "one crossover";
      gpu_before = chosen;
    }
    EXPECT_TRUE(gpu_before);
    EXPECT_FALSE(rates.prefers_gpu(work, std::nullopt));
  }
  // Unmeasured: only what takes 16 threads longer than 0.2 s.
  EXPECT_FALSE(unmeasured(16).prefers_gpu(Work::compress, 1'330'000'000));
  EXPECT_TRUE(unmeasured(16).prefers_gpu(Work::compress, 1'340'000'000));
}

}  // namespace
}  // namespace ptxkit::codec
