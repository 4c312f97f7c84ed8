// Functions with a variable number of arguments, the way the DPU passes them: through memory.
#pragma once

#include "llvm/IR/Module.h"

namespace dpu {

// Gives every variadic function, here `f(a, ...)`, the type `f(a, i8*)`: the caller stores the further arguments into
// 8-byte slots and passes their address, va_start yields it, va_arg reads a slot and goes to the next. All objects of a
// program are compiled by this compiler, so they agree. Returns false after a message if a struct is passed that way.
bool expandVariadic(llvm::Module &module);

} // namespace dpu
