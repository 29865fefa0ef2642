#include "worker/grammar/grammar_store.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include <limits>
#include <string>
#include <utility>

#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr int kThreads = 2;
constexpr TextPool::Limits kNoLimits = {
    .tasks = std::numeric_limits<size_t>::max(),
    .bytes = std::numeric_limits<size_t>::max()};

}  // namespace

GrammarStore::GrammarStore(absl::StatusOr<TokenBytes> tokens,
                           const Options& options)
    : pool_("grammar", kThreads, kNoLimits) {
  const size_t bytes = tokens.ok() ? tokens->bytes.size() : 0;
  const absl::Status begun = pool_.Run(
      bytes, [this, tokens = std::move(tokens), options]() mutable {
        MakeVocabulary(std::move(tokens), options);
      });
  CHECK(begun.ok()) << begun;
}

// Nobody is left who would wait. The vocabulary, which what is being compiled
// may wait for, was the first to begin.
GrammarStore::~GrammarStore() { pool_.Clear(); }

void GrammarStore::MakeVocabulary(absl::StatusOr<TokenBytes> tokens,
                                  const Options& options) {
  if (tokens.ok()) {
    vocabulary_ = GrammarVocabulary::Create(
        *std::move(tokens), options.vocab_size, options.eos_token_ids);
  } else {
    vocabulary_ = absl::FailedPreconditionError(absl::StrCat(
        "grammars need the model's tokens: ", tokens.status().message()));
  }
  has_vocabulary_.Notify();
}

void GrammarStore::Prepare(uint64_t number, const v1::Grammar& grammar,
                           Done done) {
  {
    absl::MutexLock lock(&mutex_);
    if (!entries_.emplace(number, std::make_shared<Entry>()).second) return;
  }
  const absl::Status begun = pool_.Run(
      grammar.ByteSizeLong(), [this, number, grammar, done = std::move(done)] {
        const std::shared_ptr<Entry> entry = Find(number);
        absl::Status status = absl::CancelledError("the grammar was released");
        if (entry != nullptr) {
          entry->compiled = Compile(grammar);
          status = entry->compiled.status();
          entry->is_compiled.Notify();
        }
        if (done) done(status);
      });
  CHECK(begun.ok()) << begun;
}

absl::StatusOr<GrammarMatcher> GrammarStore::Compile(
    const v1::Grammar& grammar) {
  has_vocabulary_.WaitForNotification();
  LOCKSTEP_RETURN_IF_ERROR(vocabulary_.status());
  return (*vocabulary_)->Compile(grammar);
}

void GrammarStore::Release(uint64_t number) {
  absl::MutexLock lock(&mutex_);
  entries_.erase(number);
}

absl::StatusOr<GrammarMatcher> GrammarStore::Begin(uint64_t number) {
  const std::shared_ptr<Entry> entry = Find(number);
  if (entry == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("there is no grammar ", number, "."));
  }
  entry->is_compiled.WaitForNotification();
  absl::MutexLock lock(&entry->mutex);
  LOCKSTEP_RETURN_IF_ERROR(entry->compiled.status());
  return entry->compiled->Clone();
}

std::shared_ptr<GrammarStore::Entry> GrammarStore::Find(uint64_t number) {
  absl::MutexLock lock(&mutex_);
  const auto at = entries_.find(number);
  return at == entries_.end() ? nullptr : at->second;
}

}  // namespace lockstep
