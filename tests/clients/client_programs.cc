#include "tests/clients/client_programs.h"

#include <absl/strings/str_cat.h>
#include <absl/time/time.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "tests/testing/process.h"

namespace lockstep::testing {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(120);

std::string Variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

// Where tools/fetch.sh puts them.
std::string ClientsFolder() {
  return Variable("LOCKSTEP_TEST_DATA") + "/clients";
}

bool CanRun(const std::string& path) {
  return access(path.c_str(), X_OK) == 0;
}

void Run(const std::string& program, const std::string& script,
         std::vector<std::string> arguments,
         const std::map<std::string, std::string>& environment) {
  if (!CanRun(program)) {
    GTEST_SKIP() << "there is no openai library in " << ClientsFolder()
                 << " for " << script << "; ./lockstep test fetches it";
  }
  arguments.insert(arguments.begin(), InRunfiles("tests/clients/" + script));
  const auto process = *Process::Start(program, arguments, environment);
  EXPECT_EQ(process->WaitForExit(kTimeout).value_or(-1), 0)
      << process->output();
}

}  // namespace

std::string FindProgram(const std::string& name) {
  const passwd* user = getpwuid(getuid());
  const std::string home = user == nullptr ? "" : user->pw_dir;
  for (const std::string& folder :
       {ClientsFolder(), home + "/go/bin", std::string("/usr/local/bin"),
        std::string("/usr/bin")}) {
    const std::string path = absl::StrCat(folder, "/", name);
    if (CanRun(path)) return path;
  }
  return "";
}

void RunPython(const std::string& script,
               const std::vector<std::string>& arguments) {
  Run(ClientsFolder() + "/python3", script, arguments,
      {{"PYTHONPATH", ClientsFolder() + "/packages"}});
}

void RunJavaScript(const std::string& script,
                   const std::vector<std::string>& arguments) {
  Run(ClientsFolder() + "/node", script, arguments,
      {{"NODE_PATH", ClientsFolder() + "/node_modules"}});
}

}  // namespace lockstep::testing
