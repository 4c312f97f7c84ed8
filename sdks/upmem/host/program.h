// A DPU program: what an ELF file says of it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <dpu_error.h>
#include <dpu_types.h>

#include "../shared/layout.h"

struct dpu_program_t {
    shared::Program layout{};
    std::vector<std::uint8_t> wram; // all of WRAM as it is at load
    struct Block {
        std::uint32_t address;
        std::vector<std::uint8_t> bytes;
    };
    std::vector<Block> mram; // what is loaded into MRAM
    std::map<std::string, dpu_symbol_t> symbols;
    std::string lines; // the records of source lines, see abi.h
    int code = -1; // a file in memory with the text and the notes behind it, for every DPU that runs it

    dpu_program_t() = default;
    dpu_program_t(const dpu_program_t &) = delete;
    dpu_program_t &operator=(const dpu_program_t &) = delete;
    ~dpu_program_t();
};

// Reads a program out of an ELF file's bytes. `name` is what messages call it. On an error `program` stays as it is.
dpu_error_t read_program(const std::string &name, const std::vector<std::uint8_t> &file,
                         std::shared_ptr<dpu_program_t> &program);
