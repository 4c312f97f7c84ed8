// Runs a target on files, without libFuzzer: prints the name of each before it is read; at the end, how many it accepted.
#include <cstdint>
#include <cstdio>
#include <vector>

extern int accepted;
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        std::printf("%s\n", argv[i]);
        std::fflush(stdout);
        std::FILE *file = std::fopen(argv[i], "rb");
        if (!file) return 1;
        std::vector<std::uint8_t> bytes;
        std::uint8_t buffer[1 << 14];
        for (std::size_t got; (got = std::fread(buffer, 1, sizeof(buffer), file)) > 0;)
            bytes.insert(bytes.end(), buffer, buffer + got);
        std::fclose(file);
        LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
    std::printf("%d\n", accepted);
    return 0;
}
