// Runs a libFuzzer target without libFuzzer: every file named on the command
// line, then seeded mutations of them for a fixed number of runs. Set
// LOCKSTEP_FUZZ_SEED to repeat a run, LOCKSTEP_FUZZ_RUNS for a longer one.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Input = std::vector<uint8_t>;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

// Copies the input, so that a read past its end is seen by AddressSanitizer. As
// libFuzzer's, an empty one has an address too.
void Run(const Input& input) {
  const auto copy = std::make_unique<uint8_t[]>(input.size());
  std::copy(input.begin(), input.end(), copy.get());
  LLVMFuzzerTestOneInput(copy.get(), input.size());
}

void MutateOnce(Input& input, const std::vector<Input>& corpus,
                std::mt19937_64& random) {
  const auto below = [&random](size_t n) { return random() % n; };
  const size_t at = below(input.size() + 1);
  switch (below(6)) {
    case 0:  // flip a bit
      if (at < input.size()) input[at] ^= 1 << below(8);
      break;
    case 1:  // a byte that often matters
      if (at < input.size()) {
        constexpr uint8_t kEdges[] = {0, 1, 0x7f, 0x80, 0xff, '"', '{', '\n'};
        input[at] = kEdges[below(std::size(kEdges))];
      }
      break;
    case 2:  // a size that often matters
      if (at + 8 <= input.size()) {
        const uint64_t value = below(2) ? ~uint64_t{0} >> below(64) : below(64);
        for (int i = 0; i < 8; ++i) input[at + i] = value >> (8 * i);
      }
      break;
    case 3:  // cut off
      input.resize(at);
      break;
    case 4:  // drop some
      input.erase(input.begin() + at,
                  input.begin() + at + below(input.size() - at + 1));
      break;
    default: {  // insert a part of another input
      const Input& other = corpus[below(corpus.size())];
      const size_t from = below(other.size() + 1);
      const size_t to = from + below(other.size() - from + 1);
      input.insert(input.begin() + at, other.begin() + from,
                   other.begin() + to);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Input> corpus;
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "cannot read %s\n", argv[i]);
      return 1;
    }
    corpus.emplace_back(std::istreambuf_iterator<char>(file),
                        std::istreambuf_iterator<char>());
    Run(corpus.back());
  }
  if (corpus.empty()) corpus.emplace_back();

  const uint64_t seed =
      FromEnvironment("LOCKSTEP_FUZZ_SEED", std::random_device{}());
  const uint64_t runs = FromEnvironment("LOCKSTEP_FUZZ_RUNS", 20'000);
  std::printf("corpus of %zu, %llu runs, LOCKSTEP_FUZZ_SEED=%llu\n",
              corpus.size(), static_cast<unsigned long long>(runs),
              static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  std::mt19937_64 random(seed);
  for (uint64_t i = 0; i < runs; ++i) {
    Input input = corpus[random() % corpus.size()];
    for (uint64_t n = random() % 4 + 1; n > 0; --n) {
      MutateOnce(input, corpus, random);
    }
    Run(input);
  }
  return 0;
}
