// Child processes and temporary files. No other file of the driver starts or makes any.
#pragma once

#include <string>
#include <vector>

namespace driver {

// Where the programs and files of the installation are.
struct Installation {
  std::string prefix; // the SDK's, above bin/
  std::string bin() const { return prefix + "/bin"; }
  std::string backend() const { return prefix + "/libexec/dpu-backend"; }
  std::string include() const { return prefix + "/share/upmem/include"; }
  std::string library() const { return prefix + "/share/upmem/lib"; }

  // Found from the running program's own path.
  static Installation find();
};

// Runs a command and waits. With `verbose` prints it to stderr first; with `dryRun` does only that. Returns its exit
// status, 127 if it could not be started, 128 + N if signal N ended it.
int run(const std::vector<std::string> &command, bool verbose, bool dryRun);

// A temporary folder. The destructor removes it with everything in it.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  // A new name in it; nothing is created.
  std::string file(const std::string &suffix);

private:
  std::string path;
  int count = 0;
};

} // namespace driver
