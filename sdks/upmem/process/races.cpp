// The check of data races. Vector clocks as in FastTrack: of a piece of memory, the last write and the reads since.
#include "races.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

#include "../shared/poison.h"

namespace {

using shared::Rule;

constexpr std::uint32_t WORD = 4, WORDS = FOUNDRY_DPU_WRAM_SIZE / WORD;
// The most separate pieces of MRAM, about 50 MB. Beyond it the check forgets all of MRAM and starts again.
constexpr std::size_t MOST_SEGMENTS = std::size_t{1} << 18;
// Each has a tree of its pieces, so that the trees are small.
constexpr std::uint32_t MRAM_PAGE = 1 << 14;
// After a tasklet has stored the same value this often in one epoch, its stores there are not checked until the next.
constexpr std::uint8_t PATIENCE = 32;

// A bit for each byte that differs.
std::uint8_t differing(std::uint64_t one, std::uint64_t other) {
    std::uint8_t mask = 0;
    for (int byte = 0; one != other && byte < 8; byte++)
        if ((one ^ other) >> 8 * byte & 0xff) mask |= static_cast<std::uint8_t>(1u << byte);
    return mask;
}

} // namespace

Races::Races(Memory &memory, Synchronization &synchronization, Log &log)
    : memory_(memory), synchronization_(synchronization), log_(log),
      on_(memory.races() != shared::Races::ignore && memory.nr_tasklets() > 1), words_(nullptr, std::free), bytes_(nullptr, std::free),
      split_(WORDS), mram_(nullptr, std::free) {
    if (!on_) return;
    // Zero pages until they are used.
    words_.reset(static_cast<Cell *>(std::calloc(WORDS, sizeof(Cell))));
    bytes_.reset(static_cast<Cell *>(std::calloc(FOUNDRY_DPU_WRAM_SIZE, sizeof(Cell))));
    mram_.reset(static_cast<Segments **>(std::calloc(FOUNDRY_DPU_MRAM_SIZE / MRAM_PAGE, sizeof(Segments *))));
    if (!words_ || !bytes_ || !mram_) throw std::bad_alloc();
}

void Races::begin() {
    reported_.clear();
    stale_.clear();
    forget();
}

void Races::forget() {
    for (std::uint32_t page : used_) {
        for (auto &[start, segment] : *mram_[page]) forget_readers(segment.cell);
        mram_[page]->clear();
    }
    used_.clear();
    nr_segments_ = 0;
}

void Races::enter(std::uint32_t tasklet) {
    *Memory::at<std::uint32_t>(FOUNDRY_DPU_SHADOW) =
        FOUNDRY_DPU_SHADOW_BASE + tasklet * FOUNDRY_DPU_SHADOW_STRIDE;
    if (!on_) return; // all epochs are 0, and so are the shadows: nothing is new
    std::uint32_t time = synchronization_.clock(tasklet).at[tasklet];
    if (times_[tasklet] != time) {
        times_[tasklet] = time;
        if (++epochs_[tasklet] == 0) {
            epochs_[tasklet] = 1;
            madvise(Memory::at<void>(FOUNDRY_DPU_SHADOW_BASE + tasklet * FOUNDRY_DPU_SHADOW_STRIDE),
                    FOUNDRY_DPU_SHADOW_STRIDE, MADV_DONTNEED);
        }
    }
    std::memset(Memory::at<void>(FOUNDRY_DPU_EPOCH), epochs_[tasklet], 8);
}

std::uint8_t *Races::shadow(std::uint32_t tasklet, std::uint32_t address) const {
    return Memory::at<std::uint8_t>(FOUNDRY_DPU_SHADOW_BASE + tasklet * FOUNDRY_DPU_SHADOW_STRIDE +
                                    (address & FOUNDRY_DPU_SHADOW_MASK));
}

bool Races::seen(std::uint32_t tasklet, std::uint32_t address, std::uint32_t bytes, std::uint32_t offset) const {
    const std::uint8_t *at = shadow(tasklet, address) + offset;
    // All equal to the first, which is the epoch.
    return at[0] == epochs_[tasklet] && std::memcmp(at, at + 1, bytes - 1) == 0;
}

void Races::mark(std::uint32_t tasklet, std::uint32_t address, std::uint32_t bytes, bool written) const {
    std::uint8_t *at = shadow(tasklet, address);
    std::memset(at, epochs_[tasklet], bytes);
    if (written) std::memset(at + FOUNDRY_DPU_SHADOW_WRITES, epochs_[tasklet], bytes);
}

Races::Readers &Races::several(Cell &cell) {
    if (cell.shared == 0) {
        if (free_readers_.empty()) {
            readers_.emplace_back();
            cell.shared = static_cast<std::uint32_t>(readers_.size());
        } else {
            cell.shared = free_readers_.back();
            free_readers_.pop_back();
            readers_[cell.shared - 1] = {};
        }
        if (cell.reader != 0) readers_[cell.shared - 1][cell.reader - 1] = cell.read;
        cell.reader = 0;
    }
    return readers_[cell.shared - 1];
}

void Races::forget_readers(Cell &cell) {
    if (cell.shared != 0) free_readers_.push_back(cell.shared);
    cell.shared = 0;
    cell.reader = 0;
}

bool Races::has_unknown_reader(const Act &act, const Cell &cell) const {
    if (cell.shared == 0) return unknown(act, cell.reader, cell.read);
    const Readers &readers = readers_[cell.shared - 1];
    for (std::uint32_t i = 0; i < readers.size(); i++)
        if (readers[i].time != 0 && unknown(act, static_cast<std::uint8_t>(i + 1), readers[i])) return true;
    return false;
}

void Races::found(const Broken &broken, std::uint32_t place, std::uint32_t other) {
    if (memory_.races() == shared::Races::ignore) return;
    if (memory_.races() == shared::Races::fault) throw broken;
    if (!reported_.insert({place, other}).second) return;
    std::string text = format("tasklet %u: %s: %s", broken.tasklet, rule_name(broken.rule), broken.text.c_str());
    log_.report(text);
}

void Races::race(const Act &act, const char *does, std::uint32_t address, std::uint32_t bytes, int other,
                 const char *did, std::uint32_t site) {
    auto at = [&](std::uint32_t site) {
        if (site >= FOUNDRY_DPU_SITE_BASE) return " at " + memory_.site(site);
        return site ? format(" at code 0x%08x", site) : std::string();
    };
    const char *hint = memory_.races() == shared::Races::fault
                           ? " (DPU_EMULATOR_RACES=report continues, DPU_EMULATOR_RACES=ignore leaves out this check)"
                           : "";
    found({act.in_mram ? Rule::mram_race : Rule::wram_race, act.tasklet, address, bytes,
           format("tasklet %u %s %u bytes at 0x%08x (%s)%s, tasklet %d %s%s, and no barrier, mutex, semaphore or "
                  "handshake lies between them%s",
                  act.tasklet, does, bytes, address, memory_.name(address).c_str(), at(act.site).c_str(), other, did,
                  at(site).c_str(), hint)},
          act.site, site);
}

void Races::read(const Act &act, Cell &cell, std::uint32_t address, std::uint32_t bytes) {
    if (!act.in_mram && cell.changed && unknown(act, cell.writer, cell.write))
        race(act, "reads", address, bytes, cell.writer - 1, "has written it", cell.write.site);
    Moment now = {synchronization_.clock(act.tasklet).at[act.tasklet], act.site};
    if (cell.shared == 0 && (cell.reader == 0 || !unknown(act, cell.reader, cell.read))) {
        cell.reader = static_cast<std::uint8_t>(act.tasklet + 1);
        cell.read = now;
    } else {
        several(cell)[act.tasklet] = now;
    }
}

inline bool Races::record_write(const Act &act, Cell &cell, const Moment &now, std::uint8_t mask) {
    bool again = cell.writer == act.tasklet + 1 && cell.write.time == now.time;
    cell.changed = mask != 0 || (again && cell.changed);
    cell.mask = again ? cell.mask | mask : mask;
    cell.repeated = again && mask == 0 && cell.repeated < PATIENCE ? static_cast<std::uint8_t>(cell.repeated + 1) : 0;
    cell.writer = static_cast<std::uint8_t>(act.tasklet + 1);
    cell.write = now;
    return cell.changed || cell.repeated == PATIENCE;
}

// Returns whether the write is recorded for the rest of the epoch.
template <typename Changes>
bool Races::write(const Act &act, Cell &cell, std::uint32_t address, std::uint32_t bytes, bool part, Changes changes) {
    Moment now = {synchronization_.clock(act.tasklet).at[act.tasklet], act.site};
    bool against_write = unknown(act, cell.writer, cell.write);
    std::uint8_t mask = changes();
    bool changed = mask != 0;
    if (against_write) {
        bool reads_too = cell.shared ? readers_[cell.shared - 1][act.tasklet].time != 0 : cell.reader == act.tasklet + 1;
        if (changed || part || (act.in_mram && cell.part) || reads_too)
            race(act, reads_too ? "reads and writes" : "writes", address, bytes, cell.writer - 1,
                 act.in_mram ? "has written to the same word of 8 bytes" : "has written it", cell.write.site);
        // The same value, so both orders give it. The other tasklet's next write is checked again.
        if (!act.in_mram)
            std::memset(shadow(cell.writer - 1u, address) + FOUNDRY_DPU_SHADOW_WRITES, 0, bytes);
    }
    if (!has_unknown_reader(act, cell)) forget_readers(cell);
    cell.part = part;
    return record_write(act, cell, now, mask);
}

template <typename Visit> void Races::for_wram(std::uint32_t address, std::uint32_t bytes, Visit visit) {
    std::uint32_t end = address + bytes;
    while (address < end) {
        std::uint32_t offset = address - FOUNDRY_DPU_WRAM_BASE, word = offset / WORD;
        bool whole = offset % WORD == 0 && end - address >= WORD;
        if (whole && !split_[word]) {
            visit(words_[word], address, WORD);
            address += WORD;
            continue;
        }
        if (!split_[word]) {
            split_[word] = true;
            for (std::uint32_t i = 0; i < WORD; i++) {
                Cell &one = bytes_[word * WORD + i] = words_[word];
                if (words_[word].shared == 0) continue;
                Readers readers = readers_[words_[word].shared - 1];
                one.shared = 0;
                several(one) = readers;
            }
            forget_readers(words_[word]);
        }
        visit(bytes_[offset], address, 1);
        address++;
    }
}

// Cuts a segment in two; returns the second.
Races::Segments::iterator Races::split(Segments &segments, Segments::iterator segment, std::uint32_t address) {
    Segment second = segment->second;
    if (second.cell.shared != 0) {
        Readers readers = readers_[second.cell.shared - 1];
        second.cell.shared = 0;
        several(second.cell) = readers;
    }
    segment->second.end = address;
    nr_segments_++;
    return segments.emplace_hint(std::next(segment), address, second);
}

template <typename Visit> void Races::for_mram(std::uint32_t address, std::uint32_t bytes, Visit visit) {
    if (nr_segments_ > MOST_SEGMENTS) forget();
    for (std::uint32_t end = address + bytes; address < end;) {
        std::uint32_t page = (address - FOUNDRY_DPU_MRAM_BASE) / MRAM_PAGE;
        std::uint32_t until = std::min(end, FOUNDRY_DPU_MRAM_BASE + (page + 1) * MRAM_PAGE);
        for_page(page, address, until - address, visit);
        address = until;
    }
}

template <typename Visit>
void Races::for_page(std::uint32_t page, std::uint32_t address, std::uint32_t bytes, Visit visit) {
    if (!mram_[page]) mram_[page] = &trees_.emplace_back(&pool_);
    Segments &segments = *mram_[page];
    if (segments.empty()) used_.push_back(page);
    std::uint32_t end = address + bytes;
    auto next = segments.upper_bound(address);
    if (next != segments.begin()) {
        auto before = std::prev(next);
        if (before->first == address)
            next = before;
        else if (before->second.end > address)
            next = split(segments, before, address);
    }
    while (address < end) {
        if (next == segments.end() || next->first > address) {
            std::uint32_t until = next == segments.end() ? end : std::min(end, next->first);
            next = segments.emplace_hint(next, address, Segment{until, {}});
            nr_segments_++;
        } else if (next->second.end > end) {
            split(segments, next, end);
        }
        visit(next->second.cell, address, next->second.end - address);
        address = next->second.end;
        // One segment of what has become the same.
        if (next != segments.begin()) {
            auto before = std::prev(next);
            if (before->second.end == next->first && same(before->second.cell, next->second.cell)) {
                before->second.end = next->second.end;
                segments.erase(next);
                nr_segments_--;
                next = before;
            }
        }
        ++next;
    }
}

bool Races::same(const Cell &one, const Cell &two) {
    auto equal = [](const Moment &left, const Moment &right) {
        return left.time == right.time && left.site == right.site;
    };
    return one.shared == 0 && two.shared == 0 && one.writer == two.writer && one.reader == two.reader &&
           one.part == two.part && one.mask == two.mask && (one.writer == 0 || equal(one.write, two.write)) &&
           (one.reader == 0 || equal(one.read, two.read));
}

void Races::read_wram(std::uint32_t tasklet, std::uint32_t address, std::uint32_t bytes, std::uint32_t site) {
    use(address, bytes, site);
    if (address < FOUNDRY_DPU_STACK_BASE)
        for_wram(address, bytes, [&](Cell &cell, std::uint32_t at, std::uint32_t length) {
            read({tasklet, site, false}, cell, at, length);
        });
    mark(tasklet, address, bytes, false);
}

void Races::write_wram(std::uint32_t tasklet, std::uint32_t address, std::uint32_t bytes, std::uint32_t site,
                       const std::uint8_t *incoming) {
    refresh(address, bytes);
    if (address >= FOUNDRY_DPU_STACK_BASE) {
        mark(tasklet, address, bytes, true);
        return;
    }
    std::uint32_t from = address; // what is kept from here on is yet to be marked
    auto mark_until = [&](std::uint32_t end) {
        if (end > from) mark(tasklet, from, end - from, true);
    };
    for_wram(address, bytes, [&](Cell &cell, std::uint32_t at, std::uint32_t length) {
        bool kept = write({tasklet, site, false}, cell, at, length, false, [&]() -> std::uint8_t {
            if (!incoming) return 1;
            if (length == 1) return *Memory::at<std::uint8_t>(at) != incoming[at - address];
            std::uint32_t word;
            std::memcpy(&word, incoming + (at - address), WORD);
            return *Memory::at<std::uint32_t>(at) != word;
        });
        if (kept) return;
        mark_until(at);
        from = at + length;
    });
    mark_until(address + bytes);
}

// A tasklet that reads, in a loop, what another one has written knows of all that this one has done before.
void Races::spin(std::uint32_t tasklet, std::uint32_t address, std::uint32_t bytes) {
    if (address >= FOUNDRY_DPU_STACK_BASE) return;
    for_wram(address, bytes, [&](Cell &cell, std::uint32_t, std::uint32_t) {
        if (unknown({tasklet, 0, false}, cell.writer, cell.write)) synchronization_.learn(tasklet, cell.writer - 1u);
    });
}

bool Races::access(std::uint32_t tasklet, std::uint32_t address, std::uint32_t what, std::uint32_t site,
                   std::uint64_t value) noexcept {
    std::uint32_t bytes = what & 0xffff;
    // An access to nowhere is about to be a fault. A stack is its tasklet's.
    if (!on_ || !memory_.usable(address, bytes)) return false;
    try {
        if (what & FOUNDRY_DPU_ACCESS_SPIN) {
            spin(tasklet, address, bytes);
            return false;
        }
        if (what & FOUNDRY_DPU_ACCESS_READ) read_wram(tasklet, address, bytes, site);
        const auto *incoming =
            what & FOUNDRY_DPU_ACCESS_VALUE ? reinterpret_cast<const std::uint8_t *>(&value) : nullptr;
        if (what & FOUNDRY_DPU_ACCESS_WRITE) write_wram(tasklet, address, bytes, site, incoming);
        return false;
    } catch (const Broken &broken) {
        broken_ = broken;
        return true;
    }
}

bool Races::access_own(std::uint32_t tasklet, std::uint32_t address, std::uint32_t what, std::uint32_t site,
                       std::uint64_t value) noexcept {
    std::uint32_t bytes = what & 0xffff;
    if (!on_ || what & FOUNDRY_DPU_ACCESS_SPIN || bytes > sizeof(value) || !stale_.empty() ||
        (bytes & (bytes - 1)) != 0 || (address & (bytes - 1)) != 0 || !memory_.usable(address, bytes))
        return false;
    const std::uint64_t epochs = *Memory::at<std::uint64_t>(FOUNDRY_DPU_EPOCH);
    // Of 1, 2, 4 or 8 bytes, without a call of memset.
    auto note = [&](std::uint32_t from, std::uint32_t length, bool written) __attribute__((always_inline)) {
        for (std::uint32_t shift : {0u, written ? FOUNDRY_DPU_SHADOW_WRITES : 0u}) {
            std::uint8_t *at = shadow(tasklet, from) + shift;
            switch (length) {
            case 8: std::memcpy(at, &epochs, 8); break;
            case 4: std::memcpy(at, &epochs, 4); break;
            case 2: std::memcpy(at, &epochs, 2); break;
            default: *at = static_cast<std::uint8_t>(epochs);
            }
        }
    };
    bool reads = what & FOUNDRY_DPU_ACCESS_READ, writes = what & FOUNDRY_DPU_ACCESS_WRITE;
    if (address >= FOUNDRY_DPU_STACK_BASE) {
        note(address, bytes, writes);
        return true;
    }
    std::uint32_t word = (address - FOUNDRY_DPU_WRAM_BASE) / WORD, words = (bytes + WORD - 1) / WORD;
    bool narrow = bytes < WORD; // one byte of a word that is known by bytes
    if (narrow ? bytes != 1 || !split_[word] : split_[word] || split_[word + words - 1]) return false;
    Cell *cells = narrow ? &bytes_[address - FOUNDRY_DPU_WRAM_BASE] : &words_[word];
    Act act = {tasklet, site, false};
    const Clock &clock = synchronization_.clock(tasklet);
    auto knows = [&](std::uint8_t who, const Moment &when) { return who == 0 || clock.at[who - 1] >= when.time; };
    for (std::uint32_t i = 0; i < words; i++) {
        const Cell &cell = cells[i];
        if (cell.shared != 0 || (cell.writer != tasklet + 1 && !knows(cell.writer, cell.write)) ||
            (cell.reader != tasklet + 1 && !knows(cell.reader, cell.read)))
            return false;
    }
    // As read() and write() do for such cells.
    Moment now = {clock.at[tasklet], site};
    if (reads) note(address, bytes, false);
    bool kept = true;
    for (std::uint32_t i = 0; i < words; i++) {
        Cell &cell = cells[i];
        if (!writes) {
            cell.reader = static_cast<std::uint8_t>(tasklet + 1);
            cell.read = now;
            continue;
        }
        bool changed = true;
        if (what & FOUNDRY_DPU_ACCESS_VALUE)
            changed = narrow ? *Memory::at<std::uint8_t>(address) != static_cast<std::uint8_t>(value)
                             : *Memory::at<std::uint32_t>(address + WORD * i) !=
                                   static_cast<std::uint32_t>(value >> 32 * i);
        cell.reader = 0;
        cell.part = false;
        kept &= record_write(act, cell, now, changed);
    }
    if (writes && kept) note(address, bytes, true);
    return true;
}

template <typename Visit>
void Races::for_changed(const Cell &cell, std::uint32_t address, std::uint32_t bytes, Visit visit) {
    if (bytes > 8 || cell.mask == 0xff) {
        if (cell.mask != 0) visit(address, bytes);
        return;
    }
    for (std::uint32_t from = 0, end; from < 8; from = end + 1) {
        for (end = from; end < 8 && cell.mask >> end & 1;) end++;
        if (end > from) visit(address + from, end - from);
    }
}

// The pieces of stale bytes that lie in a range are those from the returned one on that begin before its end.
template <typename Map> static auto first_in(Map &stale, std::uint32_t address) {
    auto next = stale.upper_bound(address);
    return next != stale.begin() && std::prev(next)->second.end > address ? std::prev(next) : next;
}

void Races::make_stale(std::uint32_t wram, const Stale &stale) {
    // All tasklets' next accesses are looked at.
    for (std::uint32_t i = 0; i < memory_.nr_tasklets(); i++)
        for (std::uint32_t offset : {0, FOUNDRY_DPU_SHADOW_WRITES})
            std::memset(shadow(i, wram) + offset, 0, stale.end - wram);
    stale_[wram] = stale;
}

void Races::refresh(std::uint32_t wram, std::uint32_t bytes) {
    if (stale_.empty()) return;
    std::uint32_t end = wram + bytes;
    for (auto next = first_in(stale_, wram); next != stale_.end() && next->first < end;) {
        auto [from, piece] = *next;
        next = stale_.erase(next);
        if (piece.end > end) {
            Stale behind = piece;
            behind.mram += end - from;
            next = stale_.insert_or_assign(end, behind).first;
        }
        if (from < wram) {
            piece.end = wram;
            stale_[from] = piece;
        }
    }
}

void Races::use(std::uint32_t wram, std::uint32_t bytes, std::uint32_t site) {
    if (stale_.empty()) return;
    for (auto next = first_in(stale_, wram); next != stale_.end() && next->first < wram + bytes; ++next) {
        const Stale &stale = next->second;
        std::uint32_t from = std::max(wram, next->first), end = std::min(wram + bytes, stale.end);
        race({stale.reader, site, true}, "reads and uses", stale.mram + (from - next->first), end - from,
             static_cast<int>(stale.writer), "has written it", stale.site);
    }
}

void Races::mram_load(std::uint32_t tasklet, std::uint32_t mram, std::uint32_t bytes, bool is_volatile,
                      std::uint32_t site) {
    if (!on_) return;
    Act act = {tasklet, site, true};
    for_mram(mram & ~7u, 8, [&](Cell &cell, std::uint32_t at, std::uint32_t length) {
        if (!is_volatile && unknown(act, cell.writer, cell.write))
            for_changed(cell, at, length, [&](std::uint32_t from, std::uint32_t changed) {
                if (from < mram + bytes && from + changed > mram)
                    race(act, "reads", from, changed, cell.writer - 1, "has written it", cell.write.site);
            });
        read(act, cell, at, length);
    });
}

void Races::mram_to_wram(std::uint32_t tasklet, std::uint32_t mram, std::uint32_t wram, std::uint32_t bytes,
                         std::uint32_t site) {
    if (!on_) return;
    Act act = {tasklet, site, true};
    std::vector<std::pair<std::uint32_t, Stale>> stale;
    for_mram(mram, bytes, [&](Cell &cell, std::uint32_t at, std::uint32_t length) {
        if (unknown(act, cell.writer, cell.write))
            for_changed(cell, at, length, [&](std::uint32_t from, std::uint32_t changed) {
                std::uint32_t place = wram + (from - mram);
                stale.push_back({place, {place + changed, from, tasklet, cell.writer - 1u, cell.write.site}});
            });
        read(act, cell, at, length);
    });
    if (!seen(tasklet, wram, bytes, FOUNDRY_DPU_SHADOW_WRITES)) {
        alignas(8) std::uint8_t incoming[2048];
        memory_.peek(mram, incoming, bytes);
        write_wram(tasklet, wram, bytes, site, incoming);
    }
    refresh(wram, bytes);
    for (const auto &[place, piece] : stale) make_stale(place, piece);
}

template <typename Changes>
void Races::write_mram(std::uint32_t tasklet, std::uint32_t mram, std::uint32_t bytes, std::uint32_t site, bool part,
                       Changes changes) {
    for_mram(mram, bytes, [&](Cell &cell, std::uint32_t at, std::uint32_t length) {
        write({tasklet, site, true}, cell, at, length, part, [&]() -> std::uint8_t {
            if (length == 8) return changes(at);
            for (std::uint32_t word = at; word < at + length; word += 8)
                if (changes(word)) return 0xff;
            return 0;
        });
    });
}

void Races::wram_to_mram(std::uint32_t tasklet, std::uint32_t mram, std::uint32_t wram, std::uint32_t bytes,
                         std::uint32_t site) {
    if (!on_) return;
    if (!seen(tasklet, wram, bytes, 0)) read_wram(tasklet, wram, bytes, site);
    write_mram(tasklet, mram, bytes, site, false, [&](std::uint32_t word) {
        return differing(memory_.word(word), *Memory::at<std::uint64_t>(wram + (word - mram)));
    });
}

void Races::mram_store(std::uint32_t tasklet, std::uint32_t mram, std::uint32_t bytes, std::uint64_t value,
                       std::uint32_t site) {
    if (!on_) return;
    std::uint32_t shift = 8 * (mram & 7u);
    std::uint64_t bits = (bytes < 8 ? (1ull << 8 * bytes) - 1 : ~0ull) << shift;
    write_mram(tasklet, mram & ~7u, 8, site, bytes < 8, [&](std::uint32_t word) {
        std::uint64_t before = memory_.word(word);
        return differing(before, (before & ~bits) | (value << shift & bits));
    });
}

static Races *current;

void Races::serve() { current = this; }

extern "C" bool foundry_access_own(std::uint32_t address, std::uint32_t what, std::uint32_t site, std::uint64_t value,
                                   std::uint32_t code) {
    return current->access_own(*Memory::at<std::uint32_t>(FOUNDRY_DPU_TASKLET), address, what, site ? site : code, value);
}

extern "C" bool foundry_access(std::uint32_t address, std::uint32_t what, std::uint32_t site, std::uint64_t value,
                               std::uint32_t code) {
    return current->access(*Memory::at<std::uint32_t>(FOUNDRY_DPU_TASKLET), address, what, site ? site : code, value);
}
