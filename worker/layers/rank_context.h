#pragma once

#include "kernels/ops.h"
#include "worker/collectives/collective.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"

namespace lockstep {

// What the layers of one rank have in common. Points to what outlives them.
struct RankContext {
  const ModelConfig* config = nullptr;
  const Shard* shard = nullptr;
  kernels::Ops* ops = nullptr;
  Collective* collective = nullptr;
};

}  // namespace lockstep
