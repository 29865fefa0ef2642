#include "tests/goldens/golden_check.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <openssl/evp.h>

#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/mapped_file.h"
#include "common/status_macros.h"
#include "tests/goldens/golden_case.h"
#include "tests/goldens/golden_comparison.h"
#include "tests/goldens/golden_runner.h"
#include "tests/goldens/golden_set.h"
#include "tests/goldens/prompt_ids.h"
#include "tests/goldens/tolerance.h"
#include "tokenizer_service/tokenizer_factory.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"
#include "worker/weights/model_files.h"

namespace lockstep::goldens {
namespace {

absl::Status CheckHash(const std::string& path, const std::string& expected) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(file->bytes().data(), file->bytes().size(), hash, &size,
             EVP_sha256(), nullptr);
  const std::string found = absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(hash), size));
  if (found == expected) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, " is not the model of the goldens: its SHA-256 is ",
                   found, ", theirs is ", expected));
}

std::set<int> SizesToTry(const ModelConfig& config,
                         const GoldenCheckOptions& options) {
  if (!options.tensor_parallel_sizes.empty()) {
    return {options.tensor_parallel_sizes.begin(),
            options.tensor_parallel_sizes.end()};
  }
  std::set<int> sizes = {1, 2, 3, 4, 8};
  for (int size = 1; size <= config.num_heads; ++size) {
    if (config.num_heads % size == 0) sizes.insert(size);
  }
  return sizes;
}

// Those sizes and, of a mixture of experts, again with whole ones.
std::set<GroupCut> CutsToTry(const ModelConfig& config,
                             const GoldenCheckOptions& options) {
  std::set<GroupCut> cuts;
  for (const int size : SizesToTry(config, options)) {
    cuts.insert({size, /*expert_parallel=*/false});
    if (config.experts.num_experts > 0) {
      cuts.insert({size, /*expert_parallel=*/true});
    }
  }
  return cuts;
}

std::string Name(const GroupCut& cut) {
  return absl::StrCat(cut.size, cut.size == 1 ? " rank" : " ranks",
                      cut.expert_parallel ? " of whole experts" : "");
}

// Whether every rank gets a shard.
absl::Status CheckCut(const ModelFiles& model, const GroupCut& cut) {
  for (int rank = 0; rank < cut.size; ++rank) {
    LOCKSTEP_RETURN_IF_ERROR(MakeShard(model.config, model.row_parallel_blocks,
                                       rank, cut.size, cut.expert_parallel)
                                 .status());
  }
  return absl::OkStatus();
}

// One line a result, and their count.
class Report {
 public:
  explicit Report(std::ostream* out) : out_(out) {}

  void Pass(const std::string& name, const std::string& what) {
    Line("pass", name, what, &counts_.passed);
  }
  void Fail(const std::string& name, absl::string_view what) {
    Line("FAIL", name, what, &counts_.failed);
  }
  void Skip(const std::string& name, absl::string_view what) {
    Line("skip", name, what, &counts_.skipped);
  }
  const GoldenCounts& counts() const { return counts_; }

 private:
  void Line(const char* verdict, const std::string& name,
            absl::string_view what, int* count) {
    *out_ << verdict << "  " << name << ": " << what << std::endl;
    ++*count;
  }

  std::ostream* const out_;
  GoldenCounts counts_;
};

void CheckPrompts(const GoldenCase& golden, Report* report) {
  const bool have_text =
      !golden.prompts.empty() && golden.prompts.front().text.has_value();
  if (!have_text) return;
  const std::string name = absl::StrCat(golden.name, ", prompts");
  const auto tokenizer = OpenTokenizer(golden.model_path);
  if (!tokenizer.ok()) return report->Fail(name, tokenizer.status().message());
  for (const GoldenPrompt& prompt : golden.prompts) {
    const absl::Status status = CheckPromptIds(prompt, **tokenizer);
    if (!status.ok()) return report->Fail(name, status.message());
  }
  report->Pass(name, absl::StrCat("rendered and encoded as expected, all ",
                                  golden.prompts.size()));
}

// The answers of a group; nothing where there are none.
std::optional<std::vector<GoldenAnswer>> CheckAnswers(const GoldenCase& golden,
                                                      const ModelFiles& model,
                                                      const GroupCut& cut,
                                                      const Numerics& numerics,
                                                      Report* report) {
  const std::string name = absl::StrCat(golden.name, ", ", Name(cut));
  if (const absl::Status status = CheckCut(model, cut); !status.ok()) {
    report->Skip(name, status.message());
    return std::nullopt;
  }
  auto answers = AnswerPrompts(model, cut, numerics, golden.prompts);
  if (!answers.ok()) {
    report->Fail(name, answers.status().message());
    return std::nullopt;
  }
  const Tolerance tolerance = ToleranceFor(golden, numerics);
  Comparison comparison;
  for (size_t i = 0; i < golden.prompts.size(); ++i) {
    Add(golden.prompts[i], (*answers)[i], tolerance, &comparison);
  }
  if (Agrees(comparison, tolerance)) {
    report->Pass(name, Describe(comparison));
  } else {
    report->Fail(name, Describe(comparison));
  }
  return *std::move(answers);
}

// That groups that cut their sums as the first does give the same bits.
void CheckSameBits(const GoldenCase& golden, const ModelFiles& model,
                   const std::map<GroupCut, std::vector<GoldenAnswer>>& answers,
                   Report* report) {
  if (answers.empty()) return;
  const auto sum_cuts = [&model](const GroupCut& cut) {
    return SumCuts(model.config, model.row_parallel_blocks, cut.size,
                   cut.expert_parallel);
  };
  const auto& [first, expected] = *answers.begin();
  std::vector<std::string> same, other;
  for (const auto& [cut, of_cut] : answers) {
    if (sum_cuts(cut) != sum_cuts(first)) continue;
    (of_cut == expected ? same : other).push_back(Name(cut));
  }
  const std::string name =
      absl::StrCat(golden.name, ", ", absl::StrJoin(same, ", "));
  if (!other.empty()) {
    report->Fail(name, absl::StrCat("other logits or ids on ",
                                    absl::StrJoin(other, ", ")));
  } else if (same.size() > 1) {
    report->Pass(name, "the same logits and ids, bit for bit");
  }
}

void CheckCase(const GoldenCase& golden, const GoldenCheckOptions& options,
               Report* report) {
  if (golden.model_path.empty()) {
    return report->Skip(golden.name, "its model is not there: give --model");
  }
  if (!golden.sha256.empty()) {
    const absl::Status status = CheckHash(golden.model_path, golden.sha256);
    if (!status.ok()) return report->Fail(golden.name, status.message());
  }
  const auto model = OpenModel(golden.model_path, golden.max_context);
  if (model.status().code() == absl::StatusCode::kUnimplemented) {
    return report->Skip(golden.name, model.status().message());
  }
  if (!model.ok()) {
    return report->Fail(golden.name, model.status().message());
  }
  CheckPrompts(golden, report);
  std::map<GroupCut, std::vector<GoldenAnswer>> answers;
  for (const GroupCut& cut : CutsToTry(model->config, options)) {
    auto of_cut = CheckAnswers(golden, *model, cut, options.numerics, report);
    if (of_cut.has_value()) answers[cut] = *std::move(of_cut);
  }
  CheckSameBits(golden, *model, answers, report);
}

}  // namespace

absl::StatusOr<GoldenCounts> CheckGoldens(const GoldenCheckOptions& options,
                                          std::ostream& out) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto cases,
                            FindGoldens(options.folder, options.models));
  out << options.numerics.arithmetic_name() << " arithmetic, "
      << options.numerics.kv_type_name() << " KV cache" << std::endl;
  Report report(&out);
  for (const GoldenCase& golden : cases) CheckCase(golden, options, &report);
  return report.counts();
}

}  // namespace lockstep::goldens
