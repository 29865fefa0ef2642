#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep {

// Kind and size of a collective call as one number, which ranks show each other
// to see that they make the same call.
uint64_t ReduceOperation(size_t count);
uint64_t GatherOperation(size_t count);

// "an all-reduce of 8 floats"
std::string OperationName(uint64_t operation);

// "the ranks are out of step: rank 0 makes …, rank 1 …"
std::string OutOfStep(int rank, uint64_t operation, int other_rank,
                      uint64_t other_operation);

}  // namespace lockstep
