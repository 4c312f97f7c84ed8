// Which tasklet knows of what: vector clocks, and the sub-8-byte MRAM writes that race by them.
//
// Hardware writes MRAM in words of 8 bytes. A smaller write reads the word, changes it and writes it back, so two
// tasklets that write different bytes of one word may lose one of the writes, unless a barrier, mutex, semaphore,
// handshake or atomic bit lies between them. Whether they really collide is a matter of cycles; whether they could is
// not.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "../abi/abi.h"

struct Clock {
    std::array<std::uint32_t, FOUNDRY_DPU_MAX_TASKLETS> at{};

    void join(const Clock &other) {
        for (std::size_t i = 0; i < at.size(); i++) at[i] = at[i] < other.at[i] ? other.at[i] : at[i];
    }
};

class SmallWrites {
  public:
    static constexpr int NOBODY = -1;

    // The tasklet whose sub-8-byte write to one of these words `clock` does not know of, other than `tasklet`; or
    // NOBODY. `word` receives the MRAM address of the word.
    int unknown(std::uint32_t tasklet, const Clock &clock, std::uint32_t mram, std::uint32_t bytes,
                std::uint32_t &word) const {
        if (last_.empty()) return NOBODY;
        for (word = mram & ~7u; word < mram + bytes; word += 8) {
            auto found = last_.find(word);
            if (found == last_.end() || found->second.tasklet == tasklet) continue;
            if (clock.at[found->second.tasklet] < found->second.when) return static_cast<int>(found->second.tasklet);
        }
        return NOBODY;
    }

    void record(std::uint32_t tasklet, const Clock &clock, std::uint32_t mram) {
        last_[mram & ~7u] = {tasklet, clock.at[tasklet]};
    }

    void clear() { last_.clear(); }

  private:
    struct Write {
        std::uint32_t tasklet, when;
    };
    std::unordered_map<std::uint32_t, Write> last_;
};
