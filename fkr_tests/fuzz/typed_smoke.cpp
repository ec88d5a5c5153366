// A bounded run of the fuzz target of typed rANS in every test run: items of every layout, most of them damaged by a
// seeded generator. usage: typed_smoke [COUNT]
#include "fkr_tests/cases/typed_arrays.hpp"
#include "fkr_tests/fuzz/stream_damage.hpp"

int main(int argc, char** argv) {
  using namespace ptxkit;
  return fuzz::run_damaged(argc, argv, [](std::mt19937& random) {
    const auto layout = static_cast<kernels::TypedLayout>(1 + random() % kernels::kTypedLayouts);
    const size_t size = random() % (random() % 8 == 0 ? 40000 : 3000);
    auto stream = testing::typed_coded(testing::weight_bytes(size, layout, static_cast<uint32_t>(random())), layout);
    stream.insert(stream.begin(), {static_cast<uint8_t>(random()), static_cast<uint8_t>(size / 512 + random() % 2)});
    return stream;
  });
}
