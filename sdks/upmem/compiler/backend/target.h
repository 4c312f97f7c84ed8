// What a DPU is to LLVM: the names, the memory layout and the two address spaces that its IR uses.
#pragma once

namespace dpu {

constexpr const char *TripleName = "dpu-upmem-dpurte";
constexpr const char *LayoutString = "e-m:e-p:32:32-i1:8:32-i8:8:32-i16:16:32-i32:32:32-i64:64:64-n32";

// Clang 14 has no DPU target. SPIR's is the one whose C types are the DPU's: 32-bit pointers and size_t, 64-bit long,
// double as long double, natural alignment, va_list a pointer, aggregates passed by reference.
constexpr const char *FrontendTriple = "spir-unknown-unknown";

constexpr unsigned Wram = 0;
constexpr unsigned Mram = 255;

// The processor that runs the code in the DPU's place: x86-64 instructions with 32-bit pointers.
constexpr const char *NativeTriple = "x86_64-unknown-linux-gnux32";

} // namespace dpu
