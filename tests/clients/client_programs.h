#pragma once

#include <string>
#include <vector>

// Programs of others that a test runs where they are installed.
// tools/fetch.sh brings them.
namespace lockstep::testing {

// The path of a program such as "grpcurl"; empty where there is none.
std::string FindProgram(const std::string& name);

// Runs a script of tests/clients with the openai library of its language. A
// script that fails is a failure of the test that shows its output; without
// the library the test is skipped, and says what to fetch.
void RunPython(const std::string& script,
               const std::vector<std::string>& arguments);
void RunJavaScript(const std::string& script,
                   const std::vector<std::string>& arguments);

}  // namespace lockstep::testing
