// How MRAM is stored: every 64-bit word XOR the poison, so that words that were never written (zero in a sparse file)
// read as the poison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../abi/abi.h"

namespace shared {

inline constexpr std::uint64_t POISON = FOUNDRY_DPU_POISON * 0x0001000100010001ull;

// Copies `bytes` (a multiple of 8) between plain memory and kept MRAM, either way. Neither needs to be aligned.
inline void copy_poisoned(void *to, const void *from, std::size_t bytes) {
    auto *out = static_cast<std::uint8_t *>(to);
    auto *in = static_cast<const std::uint8_t *>(from);
    // Blocks of a fixed size: the compiler makes vector instructions of them.
    while (bytes >= 64) {
        std::uint64_t block[8];
        std::memcpy(block, in, 64);
        for (std::uint64_t &word : block) word ^= POISON;
        std::memcpy(out, block, 64);
        in += 64, out += 64, bytes -= 64;
    }
    for (; bytes >= 8; in += 8, out += 8, bytes -= 8) {
        std::uint64_t word;
        std::memcpy(&word, in, 8);
        word ^= POISON;
        std::memcpy(out, &word, 8);
    }
}

// Fills plain memory (bytes a multiple of 2) with the poison.
inline void fill_poison(void *to, std::size_t bytes) {
    auto *out = static_cast<std::uint16_t *>(to);
    for (std::size_t i = 0; i < bytes / 2; i++) out[i] = FOUNDRY_DPU_POISON;
}

} // namespace shared
