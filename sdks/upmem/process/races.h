// Data races: accesses of two tasklets to the same memory that nothing orders, by vector clocks.
//
// Two tasklets' accesses are ordered if a barrier, mutex, semaphore, handshake, atomic bit or resume lies between them,
// or a loop in which the one waits for a value that the other writes. Cycles decide whether they really collide,
// but not whether they could. These are races:
//
// - in WRAM, a write of a byte, or a read of one that has been changed, unordered with another tasklet's write before it.
//   A write that changes nothing is none unless its tasklet has read the byte (a read-modify-write): the same value
//   written by several tasklets is there in the end. Volatile reads are not looked at. A read that comes before an
//   unordered write is none: it has got the value before it, and if that is the wrong one the result shows it.
// - in MRAM, two unordered writes of the same 8-byte word of which the second changes it, or follows the writer's own
//   read of it (a read-modify-write), or is smaller than the word (hardware makes a read-modify-write of it).
// - in MRAM, a read of bytes that an unordered write before it has changed, if the program uses them. A transfer brings
//   whole words, and programs read more than they use, so what it brings to WRAM is `stale` there until it is
//   overwritten: a read of it is the race, or a transfer of it back to MRAM. Volatile loads are not looked at.
//
// The compiled code calls access() only for what is new in the tasklet's epoch, see SHADOW in abi/abi.h.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <memory_resource>
#include <set>
#include <utility>
#include <vector>

#include "clocks.h"
#include "log.h"
#include "memory.h"
#include "rules.h"
#include "synchronization.h"

class Races {
  public:
    Races(Memory &memory, Synchronization &synchronization, Log &log);

    // From now on, this object checks compiled code's accesses.
    void serve();
    // Before a tasklet runs: sets EPOCH and SHADOW for it.
    void enter(std::uint32_t tasklet);
    // A launch begins.
    void begin();
    // All tasklets have met: nothing can race with earlier accesses.
    void forget();
    // A race at two places (sites, or addresses in the code): throws it, reports it once a launch, or ignores it.
    void found(const Broken &broken, std::uint32_t place, std::uint32_t other);

    // An access of compiled code that is about to happen. Returns whether it is a race, which broken() is then.
    bool access(std::uint32_t tasklet, std::uint32_t address, std::uint32_t what, std::uint32_t site,
                std::uint64_t value) noexcept;
    // The same, of an access to what no other tasklet has accessed out of order; false: it is not one of those, and
    // nothing is done. Calls nothing and uses general registers only.
    bool access_own(std::uint32_t tasklet, std::uint32_t address, std::uint32_t what, std::uint32_t site,
                    std::uint64_t value) noexcept;
    const Broken &broken() const { return broken_; }

    // DMA transfers and MRAM accesses that are about to be carried out; `site` is a site or an address in the code.
    // Throw Broken. `bytes` of a store that are fewer than 8 are a part of a word. `value`: what is stored, or null if
    // it comes from WRAM.
    void mram_to_wram(std::uint32_t tasklet, std::uint32_t mram, std::uint32_t wram, std::uint32_t bytes,
                      std::uint32_t site);
    void wram_to_mram(std::uint32_t tasklet, std::uint32_t mram, std::uint32_t wram, std::uint32_t bytes,
                      std::uint32_t site);
    void mram_load(std::uint32_t tasklet, std::uint32_t mram, std::uint32_t bytes, bool is_volatile,
                   std::uint32_t site);
    void mram_store(std::uint32_t tasklet, std::uint32_t mram, std::uint32_t bytes, std::uint64_t value,
                    std::uint32_t site);

  private:
    struct Moment {
        std::uint32_t time = 0; // 0: never
        std::uint32_t site = 0;
    };
    using Readers = std::array<Moment, FOUNDRY_DPU_MAX_TASKLETS>;

    // What is known of a piece of memory: the last write, and the reads since. All zero: nothing.
    struct Cell {
        Moment write, read;
        std::uint32_t shared = 0;  // of several readers: an index into readers_, from 1
        std::uint8_t writer = 0;   // tasklet + 1
        std::uint8_t reader = 0;   // tasklet + 1
        bool changed = false;      // by the write
        bool part = false;         // of an MRAM word
        std::uint8_t mask = 0;     // of an MRAM word: the bytes that the writer has changed in this epoch
        std::uint8_t repeated = 0; // writes that changed nothing in the same epoch
    };
    struct Segment {
        std::uint32_t end;
        Cell cell;
    };
    using Segments = std::pmr::map<std::uint32_t, Segment>; // by their first address
    // Bytes in WRAM that a tasklet has read from MRAM in no order with a write: another one had changed them at `site`.
    struct Stale {
        std::uint32_t end, mram, reader, writer, site;
    };
    // The access that is looked at.
    struct Act {
        std::uint32_t tasklet;
        std::uint32_t site;
        bool in_mram;
    };

    bool unknown(const Act &act, std::uint8_t who, const Moment &when) const {
        return who != 0 && who != act.tasklet + 1 && synchronization_.clock(act.tasklet).at[who - 1] < when.time;
    }
    // Both call race(). `changes` says whether the bytes of a write differ from what is there.
    void read(const Act &act, Cell &cell, std::uint32_t address, std::uint32_t bytes);
    template <typename Changes>
    bool write(const Act &act, Cell &cell, std::uint32_t address, std::uint32_t bytes, bool part, Changes changes);
    // Notes a write in the cell. Returns whether it is recorded for the rest of the epoch.
    static bool record_write(const Act &act, Cell &cell, const Moment &now, std::uint8_t mask);
    // Whether another tasklet has read this and the acting one does not know of it.
    bool has_unknown_reader(const Act &act, const Cell &cell) const;
    void forget_readers(Cell &cell);
    Readers &several(Cell &cell);

    // Calls visit(cell, address, bytes) for each piece of WRAM in a range.
    template <typename Visit> void for_wram(std::uint32_t address, std::uint32_t bytes, Visit visit);
    template <typename Visit> void for_mram(std::uint32_t address, std::uint32_t bytes, Visit visit);
    // Calls visit(address, bytes, cell) for each run of bytes that an unordered write has changed.
    template <typename Visit>
    static void for_changed(const Cell &cell, std::uint32_t address, std::uint32_t bytes, Visit visit);
    void make_stale(std::uint32_t wram, const Stale &stale);
    // What is written is stale no more.
    void refresh(std::uint32_t wram, std::uint32_t bytes);
    void use(std::uint32_t wram, std::uint32_t bytes, std::uint32_t site);
    template <typename Visit>
    void for_page(std::uint32_t page, std::uint32_t address, std::uint32_t bytes, Visit visit);
    Segments::iterator split(Segments &segments, Segments::iterator segment, std::uint32_t address);
    static bool same(const Cell &one, const Cell &two);
    void read_wram(std::uint32_t tasklet, std::uint32_t address, std::uint32_t bytes, std::uint32_t site);
    // `incoming`: the bytes to be written, or null if they are not known.
    void write_wram(std::uint32_t tasklet, std::uint32_t address, std::uint32_t bytes, std::uint32_t site,
                    const std::uint8_t *incoming);
    template <typename Changes>
    // changes(address of a word): a bit for each byte of the word that differs from what is there.
    void write_mram(std::uint32_t tasklet, std::uint32_t mram, std::uint32_t bytes, std::uint32_t site, bool part,
                    Changes changes);
    void spin(std::uint32_t tasklet, std::uint32_t address, std::uint32_t bytes);

    std::uint8_t *shadow(std::uint32_t tasklet, std::uint32_t address) const;
    bool seen(std::uint32_t tasklet, std::uint32_t address, std::uint32_t bytes, std::uint32_t offset) const;
    void mark(std::uint32_t tasklet, std::uint32_t address, std::uint32_t bytes, bool written) const;

    void race(const Act &act, const char *does, std::uint32_t address, std::uint32_t bytes, int other, const char *did,
              std::uint32_t site);

    Memory &memory_;
    Synchronization &synchronization_;
    Log &log_;
    bool on_;
    std::set<std::pair<std::uint32_t, std::uint32_t>> reported_; // places of both accesses
    std::map<std::uint32_t, Stale> stale_;                       // by the first address in WRAM
    std::array<std::uint32_t, FOUNDRY_DPU_MAX_TASKLETS> times_{}; // of the clock that EPOCH stands for
    std::array<std::uint8_t, FOUNDRY_DPU_MAX_TASKLETS> epochs_{};
    std::unique_ptr<Cell[], void (*)(void *)> words_, bytes_; // of WRAM: 4 bytes, and single bytes of split words
    std::vector<std::uint8_t> split_; // of each word, whether its bytes are known apart
    std::pmr::unsynchronized_pool_resource pool_;
    std::unique_ptr<Segments *[], void (*)(void *)> mram_; // by pages of MRAM, null until used
    std::deque<Segments> trees_;
    std::vector<std::uint32_t> used_;      // pages that have segments
    std::size_t nr_segments_ = 0;
    std::vector<Readers> readers_;
    std::vector<std::uint32_t> free_readers_;
    Broken broken_{};
};
