// From objects to a DPU program.
#pragma once

#include "arguments.h"
#include "process.h"

namespace driver {

// Links `objects` into `output` with the runtime, and checks that the program fits. Returns an exit status; leaves no
// output where it is not 0.
int link(const Arguments &arguments, const std::vector<std::string> &objects, const std::string &output,
         const Installation &installation, TemporaryFolder &temporary);

} // namespace driver
