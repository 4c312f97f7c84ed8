// From one C or IR file to an object, or to IR.
#pragma once

#include "arguments.h"
#include "process.h"

namespace driver {

// Compiles `input` into `output` (with -emit-llvm: IR). Returns an exit status.
int compile(const Arguments &arguments, const Input &input, const std::string &output, const Installation &installation,
            TemporaryFolder &temporary);

// Preprocesses or checks a C file; output as the arguments say.
int preprocess(const Arguments &arguments, const Input &input, const Installation &installation);

} // namespace driver
