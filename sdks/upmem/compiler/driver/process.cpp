// Child processes and temporary files. No other file of the driver starts or makes any.
#include "process.h"

#include "arguments.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace driver {

Installation Installation::find() {
  std::error_code ignored;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return {self.parent_path().parent_path().string()};
}

int run(const std::vector<std::string> &command, bool verbose, bool dryRun) {
  if (verbose) {
    for (const std::string &word : command)
      std::cerr << " \"" << word << "\"";
    std::cerr << "\n";
  }
  if (dryRun)
    return 0;
  std::vector<char *> words;
  for (const std::string &word : command)
    words.push_back(const_cast<char *>(word.c_str()));
  words.push_back(nullptr);
  pid_t child = 0;
  if (int failure = posix_spawnp(&child, words[0], nullptr, nullptr, words.data(), environ)) {
    error("unable to execute '" + command[0] + "': " + std::strerror(failure));
    return 127;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    error("'" + command[0] + "' was ended by signal " + std::to_string(WTERMSIG(status)));
    return 128 + WTERMSIG(status);
  }
  return WEXITSTATUS(status);
}

TemporaryFolder::TemporaryFolder() {
  path = (std::filesystem::temp_directory_path() / "dpu-clang-XXXXXX").string();
  if (!mkdtemp(path.data())) {
    error("cannot make a temporary folder: " + std::string(std::strerror(errno)));
    std::exit(1);
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

std::string TemporaryFolder::file(const std::string &suffix) { return path + "/" + std::to_string(count++) + suffix; }

} // namespace driver
