// The API's programs: dpu_load and symbols.
#include <cerrno>
#include <cstring>

#include <dpu.h>

#include "../shared/poison.h"
#include "machine.h"
#include "report.h"

namespace {

void write_mram(dpu_t &dpu, const dpu_program_t::Block &block) {
    std::uint32_t first = block.address - FOUNDRY_DPU_MRAM_BASE,
                  end = first + static_cast<std::uint32_t>(block.bytes.size());
    std::uint32_t from = first & ~7u, to = (end + 7) & ~7u;
    // Whole words of 8 bytes, around what the program says nothing of.
    std::vector<std::uint8_t> words(to - from);
    shared::copy_poisoned(words.data(), dpu.mram() + from, words.size());
    std::memcpy(words.data() + (first - from), block.bytes.data(), block.bytes.size());
    shared::copy_poisoned(dpu.mram() + from, words.data(), words.size());
}

dpu_error_t load(dpu_set_t set, const std::string &name, const std::vector<std::uint8_t> &file,
                 dpu_program_t **program) {
    Selection selection(set);
    if (!selection) return DPU_ERR_INVALID_DPU_SET;
    if (dpu_error_t error = selection.settle(); error != DPU_OK) return error;
    std::shared_ptr<dpu_program_t> fresh;
    if (dpu_error_t error = read_program(name, file, fresh); error != DPU_OK) return error;
    // New processes first: they start while the memories are filled, and look at nothing before a launch.
    for (dpu_rank_t *rank : selection.ranks())
        if (!rank->start(selection.mask(*rank), *fresh)) return DPU_ERR_DRIVER;
    for (dpu_t *dpu : selection.dpus()) {
        dpu->program = fresh;
        std::memcpy(dpu->wram(), fresh->wram.data(), fresh->wram.size());
        for (const dpu_program_t::Block &block : fresh->mram) write_mram(*dpu, block);
    }
    {
        std::lock_guard guard(selection.allocation().lock);
        selection.allocation().programs.push_back(fresh);
    }
    if (program) *program = fresh.get();
    return DPU_OK;
}

} // namespace

extern "C" {

dpu_error_t dpu_load(struct dpu_set_t dpu_set, const char *binary_path, struct dpu_program_t **program) {
    std::FILE *file = binary_path ? std::fopen(binary_path, "rb") : nullptr;
    if (!file)
        return refuse(DPU_ERR_ELF_NO_SUCH_FILE, "dpu_load: %s: %s", binary_path ? binary_path : "(null)",
                      binary_path ? std::strerror(errno) : "no path");
    std::vector<std::uint8_t> bytes;
    std::uint8_t buffer[1 << 14];
    for (std::size_t got; (got = std::fread(buffer, 1, sizeof(buffer), file)) > 0;)
        bytes.insert(bytes.end(), buffer, buffer + got);
    bool bad = std::ferror(file);
    std::fclose(file);
    if (bad) return refuse(DPU_ERR_ELF_INVALID_FILE, "dpu_load: cannot read %s", binary_path);
    return load(dpu_set, binary_path, bytes, program);
}

dpu_error_t dpu_load_from_memory(struct dpu_set_t dpu_set, uint8_t *buffer, size_t buffer_size,
                                 struct dpu_program_t **program) {
    if (!buffer) return refuse(DPU_ERR_ELF_INVALID_FILE, "dpu_load_from_memory: no program (NULL)");
    return load(dpu_set, "the program in memory", {buffer, buffer + buffer_size}, program);
}

dpu_error_t dpu_load_from_incbin(struct dpu_set_t dpu_set, struct dpu_incbin_t *incbin, struct dpu_program_t **program) {
    if (!incbin || !incbin->buffer)
        return refuse(DPU_ERR_ELF_INVALID_FILE, "dpu_load_from_incbin: no program (NULL)");
    return load(dpu_set, incbin->path ? incbin->path : "the program in memory",
                {incbin->buffer, incbin->buffer + incbin->size}, program);
}

dpu_error_t dpu_get_symbol(struct dpu_program_t *program, const char *symbol_name, struct dpu_symbol_t *symbol) {
    if (!program) return refuse(DPU_ERR_NO_PROGRAM_LOADED, "dpu_get_symbol: no program");
    if (!symbol_name) return refuse(DPU_ERR_UNKNOWN_SYMBOL, "dpu_get_symbol: no name (NULL)");
    if (!symbol) return refuse(DPU_ERR_INVALID_SYMBOL_ACCESS, "dpu_get_symbol: no place for \"%s\" (NULL)", symbol_name);
    auto found = program->symbols.find(symbol_name);
    if (found == program->symbols.end())
        return refuse(DPU_ERR_UNKNOWN_SYMBOL,
                      "the program has no symbol \"%s\" that the host can see: a __host variable, or one in MRAM",
                      symbol_name);
    *symbol = found->second;
    return DPU_OK;
}
}
