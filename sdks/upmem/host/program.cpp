// Reads DPU programs: ELF32 files of the layout that abi.h describes, and nothing else.
#include "program.h"

#include <climits>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "../shared/poison.h"
#include "report.h"

namespace {

constexpr std::uint16_t EM_UPMEM_DPU = 245;
// Stops a program that would run for minutes: 10^11 cycles are nearly five minutes of a DPU's time.
constexpr std::uint64_t DEFAULT_MAX_CYCLES = 100'000'000'000;

class Reader {
  public:
    Reader(const std::string &name, const std::vector<std::uint8_t> &file) : name_(name), file_(file) {}

    dpu_error_t read(dpu_program_t &program) {
        if (dpu_error_t error = read_header(); error != DPU_OK) return error;
        if (dpu_error_t error = read_symbols(program); error != DPU_OK) return error;
        if (dpu_error_t error = read_tasklets(program); error != DPU_OK) return error;
        if (dpu_error_t error = read_segments(program); error != DPU_OK) return error;
        return add_notes(program);
    }

  private:
    template <typename... Arguments> dpu_error_t invalid(const char *format, Arguments... arguments) {
        std::string text = "%s: " + std::string(format);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
        return refuse(DPU_ERR_ELF_INVALID_FILE, text.c_str(), name_.c_str(), arguments...);
#pragma GCC diagnostic pop
    }

    // ELF files have their tables at multiples of four.
    template <typename T> const T *at(std::size_t offset, std::size_t count = 1) const {
        if (offset % alignof(T) != 0 || offset > file_.size() || count > (file_.size() - offset) / sizeof(T)) return nullptr;
        return reinterpret_cast<const T *>(file_.data() + offset);
    }

    dpu_error_t read_header() {
        header_ = at<Elf32_Ehdr>(0);
        if (!header_ || std::memcmp(header_->e_ident, ELFMAG, SELFMAG) != 0) return invalid("this is no ELF file");
        if (header_->e_ident[EI_CLASS] == ELFCLASS32 && header_->e_machine == EM_UPMEM_DPU)
            return invalid(
                "this is a program for DPUs themselves; the emulator runs what its own dpu-upmem-dpurte-clang makes");
        if (header_->e_ident[EI_CLASS] != ELFCLASS32 || header_->e_machine != EM_X86_64 || header_->e_type != ET_EXEC)
            return invalid("this is no program of the emulator's dpu-upmem-dpurte-clang");
        if (header_->e_shentsize != sizeof(Elf32_Shdr) || header_->e_phentsize != sizeof(Elf32_Phdr))
            return invalid("its tables have entries of unexpected sizes");
        return DPU_OK;
    }

    dpu_error_t read_symbols(dpu_program_t &program) {
        const auto *sections = at<Elf32_Shdr>(header_->e_shoff, header_->e_shnum);
        if (!sections || header_->e_shstrndx >= header_->e_shnum)
            return invalid("its section table lies outside of the file or is not aligned");
        const Elf32_Shdr &section_names = sections[header_->e_shstrndx];
        for (unsigned i = 0; i < header_->e_shnum; i++) {
            std::size_t length = std::strlen(FOUNDRY_DPU_SECTION_HOST) + 1;
            const auto *name = at<char>(std::size_t{section_names.sh_offset} + sections[i].sh_name, length);
            if (name && std::memcmp(name, FOUNDRY_DPU_SECTION_HOST, length) == 0) host_section_ = i;
            for (auto [section, contents] : {std::pair{FOUNDRY_DPU_SECTION_SITES, &sites_},
                                             std::pair{FOUNDRY_DPU_SECTION_LINES, &program.lines}}) {
                length = std::strlen(section) + 1;
                name = at<char>(std::size_t{section_names.sh_offset} + sections[i].sh_name, length);
                if (!name || std::memcmp(name, section, length) != 0) continue;
                const auto *text = at<char>(sections[i].sh_offset, sections[i].sh_size);
                if (!text) return invalid("its section %s lies outside of the file", section);
                contents->assign(text, sections[i].sh_size);
            }
        }
        if (program.lines.size() > shared::COUNTERS_BYTES)
            return invalid("it counts by more source lines than there are counters for: %zu bytes of %zu",
                           program.lines.size(), shared::COUNTERS_BYTES);
        program.layout.line_bytes = static_cast<std::uint32_t>(program.lines.size());
        for (unsigned i = 0; i < header_->e_shnum; i++) {
            if (sections[i].sh_type != SHT_SYMTAB || sections[i].sh_link >= header_->e_shnum) continue;
            std::size_t count = sections[i].sh_size / sizeof(Elf32_Sym);
            const auto *symbols = at<Elf32_Sym>(sections[i].sh_offset, count);
            const Elf32_Shdr &names = sections[sections[i].sh_link];
            const auto *text = at<char>(names.sh_offset, names.sh_size);
            if (!symbols || !text || names.sh_size == 0 || text[names.sh_size - 1] != 0)
                return invalid("its symbol table lies outside of the file or is not aligned");
            for (std::size_t s = 0; s < count; s++) add_symbol(program, symbols[s], text, names.sh_size);
        }
        std::uint32_t abi = value(FOUNDRY_DPU_SYMBOL_ABI);
        if (abi != FOUNDRY_DPU_ABI_VERSION)
            return invalid("made for version %u of the emulator's interface (symbol %s), this is version %u", abi,
                           FOUNDRY_DPU_SYMBOL_ABI, FOUNDRY_DPU_ABI_VERSION);
        return DPU_OK;
    }

    void add_symbol(dpu_program_t &program, const Elf32_Sym &symbol, const char *text, std::size_t bytes) {
        if (symbol.st_name == 0 || symbol.st_name >= bytes || symbol.st_shndx == SHN_UNDEF) return;
        std::string name = text + symbol.st_name;
        if (symbol.st_shndx == SHN_ABS) values_[name] = symbol.st_value;
        unsigned type = ELF32_ST_TYPE(symbol.st_info);
        if (type != STT_OBJECT && type != STT_NOTYPE) return;
        values_[name] = symbol.st_value;
        if (type == STT_OBJECT && symbol.st_size > 0) {
            symbols_.append(reinterpret_cast<const char *>(&symbol.st_value), sizeof(symbol.st_value));
            symbols_.append(reinterpret_cast<const char *>(&symbol.st_size), sizeof(symbol.st_size));
            symbols_.append(name.c_str(), name.size() + 1);
        }
        bool in_mram =
            symbol.st_value >= FOUNDRY_DPU_MRAM_BASE && symbol.st_value - FOUNDRY_DPU_MRAM_BASE < FOUNDRY_DPU_MRAM_SIZE;
        if (symbol.st_shndx != host_section_ && !in_mram) return;
        dpu_symbol_t entry = {symbol.st_value, symbol.st_size};
        // The MRAM heap reaches to the end of MRAM, whatever its symbol says.
        if (name == FOUNDRY_DPU_SYMBOL_MRAM_END)
            entry.size = FOUNDRY_DPU_MRAM_BASE + FOUNDRY_DPU_MRAM_SIZE - symbol.st_value;
        bool global = ELF32_ST_BIND(symbol.st_info) != STB_LOCAL;
        if (global)
            program.symbols[name] = entry;
        else
            program.symbols.emplace(name, entry);
    }

    std::uint32_t value(const std::string &name, std::uint32_t otherwise = 0) const {
        auto found = values_.find(name);
        return found == values_.end() ? otherwise : found->second;
    }

    dpu_error_t read_tasklets(dpu_program_t &program) {
        shared::Program &layout = program.layout;
        layout.nr_tasklets = value(FOUNDRY_DPU_SYMBOL_NR_TASKLETS);
        if (layout.nr_tasklets == 0) return invalid("it has no tasklets (symbol %s)", FOUNDRY_DPU_SYMBOL_NR_TASKLETS);
        if (layout.nr_tasklets > FOUNDRY_DPU_MAX_TASKLETS)
            return refuse(DPU_ERR_TOO_MANY_TASKLETS, "%s: NR_TASKLETS is %u, a DPU has at most %u", name_.c_str(),
                          layout.nr_tasklets, FOUNDRY_DPU_MAX_TASKLETS);
        std::uint32_t all = value(FOUNDRY_DPU_SYMBOL_STACK_SIZE);
        for (std::uint32_t i = 0; i < layout.nr_tasklets; i++) {
            std::uint32_t bytes = value(FOUNDRY_DPU_SYMBOL_STACK_SIZE_TASKLET + std::to_string(i), all);
            if (bytes < 32 || bytes % 8 != 0 || bytes > FOUNDRY_DPU_WRAM_SIZE)
                return invalid("tasklet %u has a stack of %u bytes: that must be 32 to 65536 and a multiple of 8", i,
                               bytes);
            layout.stack_bytes[i] = bytes;
        }
        return DPU_OK;
    }

    dpu_error_t read_segments(dpu_program_t &program) {
        shared::Program &layout = program.layout;
        const auto *segments = at<Elf32_Phdr>(header_->e_phoff, header_->e_phnum);
        if (!segments) return invalid("its segment table lies outside of the file or is not aligned");
        program.wram.resize(FOUNDRY_DPU_WRAM_SIZE);
        shared::fill_poison(program.wram.data(), program.wram.size());
        std::uint32_t used = FOUNDRY_DPU_WRAM_BASE;
        std::size_t mram_bytes = 0;
        for (unsigned i = 0; i < header_->e_phnum; i++) {
            const Elf32_Phdr &segment = segments[i];
            if (segment.p_type != PT_LOAD || segment.p_memsz == 0) continue;
            const auto *bytes = at<std::uint8_t>(segment.p_offset, segment.p_filesz);
            if (!bytes || segment.p_filesz > segment.p_memsz) return invalid("segment %u lies outside of the file", i);
            if (inside(segment, FOUNDRY_DPU_WRAM_BASE, FOUNDRY_DPU_WRAM_SIZE)) {
                std::uint8_t *to = program.wram.data() + (segment.p_vaddr - FOUNDRY_DPU_WRAM_BASE);
                std::memset(to, 0, segment.p_memsz);
                std::memcpy(to, bytes, segment.p_filesz);
                used = std::max(used, segment.p_vaddr + segment.p_memsz);
            } else if (inside(segment, FOUNDRY_DPU_MRAM_BASE, FOUNDRY_DPU_MRAM_SIZE)) {
                // Segments that overlap could name the same bytes of the file again and again.
                if ((mram_bytes += segment.p_filesz) > FOUNDRY_DPU_MRAM_SIZE)
                    return invalid("its segments have more bytes than MRAM");
                if (segment.p_filesz > 0) program.mram.push_back({segment.p_vaddr, {bytes, bytes + segment.p_filesz}});
            } else if (inside(segment, FOUNDRY_DPU_CODE_BASE, FOUNDRY_DPU_CODE_SIZE)) {
                if (dpu_error_t error = add_code(program, segment, bytes); error != DPU_OK) return error;
            } else {
                return invalid("segment %u at 0x%08x, %u bytes, lies in none of WRAM, MRAM and IRAM", i,
                               segment.p_vaddr, segment.p_memsz);
            }
        }
        layout.entry = header_->e_entry;
        if (program.code < 0 || layout.entry < FOUNDRY_DPU_CODE_BASE ||
            layout.entry - FOUNDRY_DPU_CODE_BASE >= layout.code_bytes)
            return invalid("its entry point 0x%08x is not in its code", layout.entry);
        return check_wram(program, used);
    }

    static bool inside(const Elf32_Phdr &segment, std::uint32_t base, std::uint32_t bytes) {
        return segment.p_vaddr >= base && segment.p_vaddr - base <= bytes &&
               segment.p_memsz <= bytes - (segment.p_vaddr - base);
    }

    dpu_error_t add_code(dpu_program_t &program, const Elf32_Phdr &segment, const std::uint8_t *bytes) {
        if (program.code < 0) program.code = memfd_create("dpu-code", MFD_CLOEXEC);
        std::size_t offset = segment.p_vaddr - FOUNDRY_DPU_CODE_BASE, end = offset + segment.p_memsz;
        program.layout.code_bytes = std::max<std::uint32_t>(program.layout.code_bytes, static_cast<std::uint32_t>(end));
        bool good = program.code >= 0 && ftruncate(program.code, program.layout.code_bytes) == 0 &&
                    pwrite(program.code, bytes, segment.p_filesz, static_cast<off_t>(offset)) ==
                        static_cast<ssize_t>(segment.p_filesz);
        return good ? DPU_OK : refuse(DPU_ERR_SYSTEM, "%s: no memory for its code", name_.c_str());
    }

    dpu_error_t add_notes(dpu_program_t &program) {
        shared::Program &layout = program.layout;
        layout.site_bytes = static_cast<std::uint32_t>(sites_.size());
        layout.symbol_bytes = static_cast<std::uint32_t>(symbols_.size());
        std::string notes = sites_ + symbols_;
        bool good = pwrite(program.code, notes.data(), notes.size(), shared::notes_offset(layout)) ==
                    static_cast<ssize_t>(notes.size());
        return good ? DPU_OK : refuse(DPU_ERR_SYSTEM, "%s: no memory for its symbols", name_.c_str());
    }

    dpu_error_t check_wram(dpu_program_t &program, std::uint32_t used) {
        shared::Program &layout = program.layout;
        std::uint32_t stacks = 0;
        for (std::uint32_t i = 0; i < layout.nr_tasklets; i++) stacks += layout.stack_bytes[i];
        std::uint32_t globals = used - FOUNDRY_DPU_WRAM_BASE;
        if (globals + stacks > FOUNDRY_DPU_WRAM_SIZE)
            return refuse(DPU_ERR_INVALID_WRAM_ACCESS,
                          "%s: WRAM has %u bytes, the program needs %u: %u of globals, %u of stacks of %u tasklets",
                          name_.c_str(), FOUNDRY_DPU_WRAM_SIZE, globals + stacks, globals, stacks, layout.nr_tasklets);
        std::uint32_t heap_end = FOUNDRY_DPU_WRAM_BASE + FOUNDRY_DPU_WRAM_SIZE - stacks;
        layout.heap_end = value(FOUNDRY_DPU_SYMBOL_HEAP_END, heap_end);
        if (layout.heap_end > heap_end || layout.heap_end < used)
            return invalid("its WRAM heap ends at 0x%08x; globals end at 0x%08x and stacks begin at 0x%08x",
                           layout.heap_end, used, heap_end);
        const char *limit = std::getenv("DPU_EMULATOR_MAX_CYCLES");
        layout.max_cycles = limit ? std::strtoull(limit, nullptr, 10) : DEFAULT_MAX_CYCLES;
        if (layout.max_cycles == 0)
            return refuse(DPU_ERR_SYSTEM, "DPU_EMULATOR_MAX_CYCLES=%s is no number of cycles", limit);
        std::uint32_t hardware = 0, races = 0;
        if (dpu_error_t error = choose("DPU_EMULATOR_MODE", {"strict", "hardware"}, 0, hardware); error != DPU_OK)
            return error;
        layout.wrap_dma = hardware;
        if (dpu_error_t error =
                choose("DPU_EMULATOR_MISALIGNED_DMA", {"fault", "truncate"}, hardware, layout.truncate_dma);
            error != DPU_OK)
            return error;
        // In the order of shared::Races.
        dpu_error_t error = choose("DPU_EMULATOR_RACES", {"fault", "report", "ignore"}, hardware, races);
        layout.races = static_cast<shared::Races>(races);
        return error;
    }

    // The number of the value that an environment variable has, or `otherwise` if it is not set.
    static dpu_error_t choose(const char *variable, std::vector<const char *> values, std::uint32_t otherwise,
                              std::uint32_t &value) {
        const char *text = std::getenv(variable);
        value = otherwise;
        if (!text || !*text) return DPU_OK;
        std::string all;
        for (std::uint32_t i = 0; i < values.size(); i++) {
            all += std::string(i == 0 ? "" : i + 1 == values.size() ? " and " : ", ") + values[i];
            if (std::strcmp(text, values[i]) != 0) continue;
            value = i;
            return DPU_OK;
        }
        return refuse(DPU_ERR_SYSTEM, "%s=%s: the values are %s; the default is %s", variable, text, all.c_str(),
                      values[otherwise]);
    }

    const std::string &name_;
    const std::vector<std::uint8_t> &file_;
    const Elf32_Ehdr *header_ = nullptr;
    unsigned host_section_ = SHN_UNDEF; // no symbol's
    std::map<std::string, std::uint32_t> values_;
    std::string sites_, symbols_; // as shared::Program has them
};

} // namespace

dpu_program_t::~dpu_program_t() {
    if (code >= 0) close(code);
}

dpu_error_t read_program(const std::string &name, const std::vector<std::uint8_t> &file,
                         std::shared_ptr<dpu_program_t> &program) {
    auto fresh = std::make_shared<dpu_program_t>();
    dpu_error_t error = Reader(name, file).read(*fresh);
    if (error == DPU_OK) program = fresh;
    return error;
}
