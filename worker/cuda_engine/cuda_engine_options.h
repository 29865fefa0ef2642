#pragma once

#include "kernels/weights/arithmetic.h"
#include "worker/grammar/grammar_store.h"

namespace lockstep {

// Of the engine of one rank on a GPU.
struct CudaEngineOptions {
  int num_pages = 0;
  int page_size = 16;  // tokens
  int max_step_tokens = 2048;
  int max_sequences = 64;
  int max_logits_rows = 64;  // of a step
  kernels::Arithmetic arithmetic = kernels::Arithmetic::kStrict;
  // Of the requests that name one; must outlive the engine. Null: none do.
  GrammarStore* grammars = nullptr;
  // A core is free to find masks while the model computes.
  bool has_mask_thread = false;
};

}  // namespace lockstep
