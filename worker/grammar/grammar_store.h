#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <absl/synchronization/notification.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "common/text_pool.h"
#include "proto/grammar.pb.h"
#include "worker/grammar/grammar_matcher.h"
#include "worker/grammar/grammar_vocabulary.h"
#include "worker/grammar/token_bytes.h"

namespace lockstep {

// The grammars that a rank was told of, by number. Each is compiled beside the
// steps, on the threads "grammar-0" and "grammar-1", which first of all make
// the vocabulary ready.
//
//   store.Prepare(7, grammar);
//   LOCKSTEP_ASSIGN_OR_RETURN(GrammarMatcher matcher, store.Begin(7));
//   store.Release(7);
//
// Any thread. The leader bounds how many there are, for all ranks.
class GrammarStore {
 public:
  struct Options {
    size_t vocab_size = 0;
    std::vector<uint32_t> eos_token_ids;
  };

  using Done = std::function<void(const absl::Status&)>;

  // `tokens` may be the reason why there are none: that of every refusal then.
  GrammarStore(absl::StatusOr<TokenBytes> tokens, const Options& options);
  // Waits for what is being compiled, and forgets what is not yet.
  ~GrammarStore();

  // Compiles `grammar`, unless the number is known. `done` is called once, on
  // another thread; not for a number that is known, nor at the end of this.
  void Prepare(uint64_t number, const v1::Grammar& grammar,
               Done done = nullptr);

  // Forgets it, compiled or not. What was made of it lives on.
  void Release(uint64_t number);

  // A matcher at the grammar's beginning; waits until it is compiled. An error
  // is that of the compilation; NOT_FOUND for a number that is not known.
  absl::StatusOr<GrammarMatcher> Begin(uint64_t number);

 private:
  struct Entry {
    absl::Notification is_compiled;
    absl::Mutex mutex;  // of cloning
    // Written before is_compiled.
    absl::StatusOr<GrammarMatcher> compiled = absl::UnknownError("");
  };

  void MakeVocabulary(absl::StatusOr<TokenBytes> tokens,
                      const Options& options);
  absl::StatusOr<GrammarMatcher> Compile(const v1::Grammar& grammar);
  std::shared_ptr<Entry> Find(uint64_t number);

  // Written before has_vocabulary_.
  absl::StatusOr<std::unique_ptr<GrammarVocabulary>> vocabulary_ = nullptr;
  absl::Notification has_vocabulary_;

  absl::Mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);

  TextPool pool_;  // the last: its threads use all above
};

}  // namespace lockstep
