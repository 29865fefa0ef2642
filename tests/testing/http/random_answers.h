#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>

#include "proto/worker.pb.h"
#include "tests/testing/fake_worker.h"

// Requests to OpenAI's API and the answers of a model to them, at random: for
// tests of what must be the same however it is asked.
namespace lockstep::testing {

// A chat, or a completion of one prompt or several.
nlohmann::json RandomRequest(std::mt19937_64& random, bool is_chat);

// What the worker says: tokens, log-probabilities and ends are a function of
// the request alone, how they are cut into messages is one of `salt`.
FakeAnswer RandomAnswer(const v1::WorkerGenerateRequest& request,
                        uint64_t salt);

}  // namespace lockstep::testing
