// What the SDK's C++ interface does, with the program words.c; prints [OK], or the line of what does not hold.
#include <dpu>
#include <atomic>
#include <cstdint>
#include <iostream>
#include <sstream>

#define EXPECT(condition)                                                                  \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            std::cerr << "line " << __LINE__ << ": " #condition " does not hold\n";        \
            return 1;                                                                      \
        }                                                                                  \
    } while (0)
#define EXPECT_ERROR(statement, error_text)                                                \
    do {                                                                                   \
        std::string said = "nothing";                                                      \
        try {                                                                              \
            statement;                                                                     \
        } catch (const dpu::DpuError &error) {                                             \
            said = error.what();                                                           \
        }                                                                                  \
        EXPECT(said == error_text);                                                        \
    } while (0)

using Vectors = std::vector<std::vector<uint64_t>>;

int main() {
    using namespace dpu;
    const unsigned DPUS = 70;
    DpuSet set = DpuSet::allocate(DPUS, "backend=simulator");
    EXPECT(set.dpus().size() == DPUS && set.ranks().size() == 2);
    EXPECT(set.ranks()[1]->dpus().size() == 6 && set.ranks()[1]->dpus()[0] == set.dpus()[64]);
    EXPECT(set.dpus()[64]->ranks()[0] == set.ranks()[1]);
    DpuProgram program = set.load("bin/words");
    DpuSymbol words = program.get("words"), factor = program.get("factor");

    // To all the same, to each its own, from each: by name and by symbol, with offset and size.
    Vectors own(DPUS), got(DPUS);
    auto poison = [&](unsigned length) {
        for (auto &one : got) one.assign(length, 0xdeadbeef);
    };
    for (unsigned i = 0; i < DPUS; i++) own[i] = {i, i + 1000};
    set.copy("words", std::vector<uint64_t>{1, 2, 3, 4});
    set.copy(words, 8, own);
    poison(4);
    set.copy(got, words);
    for (unsigned i = 0; i < DPUS; i++) EXPECT((got[i] == std::vector<uint64_t>{1, i, i + 1000, 4}));
    set.copy("words", 24, own, 8);
    set.copy(words, own, 8);
    set.copy(words, 16, std::vector<uint64_t>{7, 8}, 8);
    poison(3);
    set.copy(got, 16, "words", 16);
    for (unsigned i = 0; i < DPUS; i++) EXPECT((got[i] == std::vector<uint64_t>{7, i, 0xdeadbeef}));
    set.copy("factor", std::vector<uint32_t>{5, 99}, 4);
    set.dpus()[3]->copy(factor, std::vector<uint32_t>{6});
    set.exec();
    poison(1);
    set.copy(got, program.get("total"));
    for (unsigned i = 0; i < DPUS; i++) EXPECT(got[i][0] == (i == 3 ? 6 : 5) * (i + i + 7 + i));
    std::ostringstream log;
    set.dpus()[3]->log(log);
    EXPECT(log.str() == "=== DPU#0x3 ===\nfactor 6\n");
    log.str("");
    set.log(log);
    EXPECT(log.str().find("factor 5") < log.str().find("factor 6"));

    // Asynchronous: everything in its order, a callback for each rank and one for the set.
    std::vector<uint32_t> two{2};
    std::atomic<unsigned> calls{0}, single{0};
    DpuSetAsync async = set.async();
    async.copy("factor", two);
    async.exec();
    async.call([&](DpuSet &rank, unsigned index) {
        Vectors totals(rank.dpus().size(), std::vector<uint64_t>(1));
        rank.copy(totals, "total");
        for (unsigned i = 0; i < totals.size(); i++)
            if (totals[i][0] == 2 * (3 * (64 * index + i) + 7)) calls++;
    });
    async.call([&](DpuSet &whole, unsigned) { single += whole.dpus().size(); }, true, true);
    poison(1);
    async.copy(got, 8, "total");
    async.sync();
    EXPECT(calls == DPUS && single == DPUS);
    for (unsigned i = 0; i < DPUS; i++) EXPECT(got[i][0] == 2 * (3 * i + 7));
    async.call([](DpuSet &part, unsigned) { part.copy("no such", std::vector<uint32_t>{1}); });
    EXPECT_ERROR(async.sync(), "undefined symbol");

    // Errors.
    EXPECT_ERROR(program.get("no such"), "undefined symbol");
    const std::string transfer = "invalid memory transfer: ";
    EXPECT_ERROR(set.copy("words", Vectors(DPUS - 1, {1})), transfer + "copy has 69 vectors for 70 DPUs");
    EXPECT_ERROR(set.copy("words", Vectors{}), transfer + "there is no vector");
    EXPECT_ERROR(set.copy("words", std::vector<uint64_t>{1}, 16),
                 transfer + "copy of 16 bytes with a vector that has 8; resize the vector to the size that is copied");
    EXPECT_ERROR(set.copy("words", std::vector<uint64_t>(5)), "invalid memory symbol access");
    own[7].push_back(1);
    EXPECT_ERROR(set.copy("words", own), transfer + "the vectors have different lengths, and no size is given");
    EXPECT_ERROR(set.load("no such"), "no such ELF file");
    EXPECT_ERROR(DpuSet::allocate(100000), "dpu allocation error");

    // A set ends with its scope, also a moved one.
    for (int i = 0; i < 5; i++) {
        DpuSet ranks = DpuSet::allocateRanks(2), moved = std::move(ranks);
        EXPECT(moved.dpus().size() == 128);
    }
    std::cout << "[OK]\n";
}
