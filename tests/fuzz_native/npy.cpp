// The reader of .npy files in standalone programs: what it accepts is the file, byte for byte, with as much data as its
// shape means.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "npy.h"

int accepted = 0;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    static const int file = memfd_create("npy", 0);
    if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
    try {
        const Array array = read_npy("/proc/self/fd/" + std::to_string(file), {"<f4", "|i4"}, 4, "make one");
        unsigned __int128 bytes = 4;
        for (std::size_t extent : array.shape) bytes *= extent;
        bool whole = array.preamble.size() + array.data.size() == size && bytes == array.data.size() &&
                     std::memcmp(array.preamble.data(), data, array.preamble.size()) == 0 &&
                     std::equal(array.data.begin(), array.data.end(), data + array.preamble.size(),
                                [](char one, std::uint8_t other) { return static_cast<std::uint8_t>(one) == other; });
        if (!whole) std::abort();
        accepted++;
    } catch (const Failure &) {
    }
    return 0;
}
