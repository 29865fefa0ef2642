#pragma once

#include <nlohmann/json.hpp>

namespace lockstep::splitting {

// How models cut a text before they merge its bytes: each a pre_tokenizer of a
// tokenizer.json, by the model that is best known for it. Pure functions.

nlohmann::json Default();
nlohmann::json Gpt2();
nlohmann::json Smollm();
nlohmann::json Llama3();
nlohmann::json Jais2();
nlohmann::json MiniCpm5();
nlohmann::json SuperBpe();
nlohmann::json Qwen2();
nlohmann::json UfakZeka();
nlohmann::json Laguna();
nlohmann::json ExaoneMoe();
nlohmann::json Qwen35();
nlohmann::json Bailing();
nlohmann::json SeedCoder();
nlohmann::json Gpt4o();
nlohmann::json TinyAya();
nlohmann::json KimiK2();
nlohmann::json Youtu();
nlohmann::json Tekken();
nlohmann::json DeepSeekLlm();
nlohmann::json DeepSeekCoder();
nlohmann::json DeepSeekV3();
nlohmann::json Spark();
nlohmann::json Afmoe();
nlohmann::json Falcon();
nlohmann::json Bloom();
nlohmann::json Viking();
nlohmann::json Chameleon();

}  // namespace lockstep::splitting
