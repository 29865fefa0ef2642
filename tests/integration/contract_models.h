#pragma once

#include <string>
#include <vector>

#include "kernels/attention/kv_type.h"
#include "kernels/weights/arithmetic.h"
#include "worker/weights/model_files.h"

namespace lockstep::testing {

// A tiny model that the determinism contract is tested on.
struct ContractModel {
  std::string name;
  ModelFiles files;
  // Group sizes whose logits must be equal; the first is the reference's.
  std::vector<int> num_ranks;
};

// Of every kind of weights, with and without eight equal slices; the files are
// written below `folder`. A model that can not be made ends the program.
std::vector<ContractModel> MakeContractModels(const std::string& folder);

// What the contract takes as given: requests of one configuration get the same
// bits.
struct Configuration {
  const ContractModel* model = nullptr;
  kernels::Arithmetic arithmetic = kernels::Arithmetic::kStrict;
  kernels::KvType kv_type = kernels::KvType::kF32;
};

// All there are of `models`, which must outlive them.
std::vector<Configuration> AllConfigurations(
    const std::vector<ContractModel>& models);

std::string Describe(const Configuration& configuration);

}  // namespace lockstep::testing
