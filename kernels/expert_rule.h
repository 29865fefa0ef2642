#pragma once

namespace lockstep::kernels {

// How a router's logits become experts and their weights.
struct ExpertRule {
  int count = 0;  // experts a token
  // An expert's score is the sigmoid of its logit, in place of their softmax
  // (DeepSeek-V3 technical report, arXiv:2412.19437, section 2.1.2).
  bool sigmoid = false;
  bool renormalize = false;  // scores of the chosen are made to sum to 1
  float scale = 1;           // weight = score · scale
  // Only of sigmoids: the experts lie in so many runs of equal length, and all
  // that are chosen are of groups_chosen of them.
  int groups = 1;
  int groups_chosen = 1;
};

}  // namespace lockstep::kernels
