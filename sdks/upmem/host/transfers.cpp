// The API's transfers.
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>

#include <dpu.h>

#include "machine.h"
#include "report.h"
#include "transfer.h"

namespace {

// How a transfer names its place: a symbol, or a name that all DPUs' programs have to understand alike.
struct Place {
    const char *name; // null: the symbol says where
    dpu_symbol_t symbol;
    std::uint32_t offset;
    std::size_t bytes;
};

// A null pointer where the API asks for a name is a name that no program has.
const char *named(const char *name) { return name ? name : "(null)"; }

dpu_error_t find(const Selection &selection, const Place &place, Range &range) {
    dpu_symbol_t symbol = place.symbol;
    if (place.name) {
        dpu_error_t error;
        dpu_program_t *program = selection.program(error);
        if (!program) return error;
        if (dpu_error_t unknown = dpu_get_symbol(program, place.name, &symbol); unknown != DPU_OK) return unknown;
    }
    return range_of(place.name ? place.name : "the symbol", symbol, place.offset, place.bytes, range);
}

dpu_error_t no_buffer(const Place &place, const char *why) {
    return refuse(DPU_ERR_INVALID_MEMORY_TRANSFER, "%s, %zu bytes: %s", place.name ? place.name : "the symbol",
                  place.bytes, why);
}

// Transfers now, after everything that was requested before; an asynchronous transfer may wait until dpu_sync.
dpu_error_t carry_out(Selection &selection, std::vector<Move> moves, const Range &range, bool to_dpu,
                      dpu_xfer_flags_t flags) {
    if (range.bytes == 0 || moves.empty()) return DPU_OK;
    if (!(flags & DPU_XFER_ASYNC)) {
        if (dpu_error_t error = selection.settle(); error != DPU_OK) return error;
        move(moves, range, to_dpu);
        return DPU_OK;
    }
    return selection.enqueue([&](dpu_rank_t &rank) {
        std::vector<Move> ours;
        for (const Move &one : moves)
            if (one.dpu->rank == &rank) ours.push_back(one);
        return [ours, range, to_dpu] {
            move(ours, range, to_dpu);
            return DPU_OK;
        };
    });
}

dpu_error_t broadcast(dpu_set_t set, const Place &place, const void *source, dpu_xfer_flags_t flags) {
    Selection selection(set);
    if (!selection) return DPU_ERR_INVALID_DPU_SET;
    Range range;
    if (dpu_error_t error = find(selection, place, range); error != DPU_OK) return error;
    if (!source && range.bytes > 0) return no_buffer(place, "no bytes to send (NULL)");
    std::vector<Move> moves;
    // Transfers to a DPU only read the host's bytes.
    for (dpu_t *dpu : selection.dpus()) moves.push_back({dpu, static_cast<std::uint8_t *>(const_cast<void *>(source))});
    return carry_out(selection, std::move(moves), range, true, flags);
}

dpu_error_t copy_from(dpu_set_t set, const Place &place, void *destination) {
    Selection selection(set);
    if (!selection) return DPU_ERR_INVALID_DPU_SET;
    if (!selection.one_dpu())
        return refuse(DPU_ERR_INVALID_DPU_SET,
                      "dpu_copy_from: the set is not one DPU; DPU_FOREACH gives them, dpu_push_xfer reads them all");
    Range range;
    if (dpu_error_t error = find(selection, place, range); error != DPU_OK) return error;
    if (!destination && range.bytes > 0) return no_buffer(place, "no place to read to (NULL)");
    return carry_out(selection, {{selection.dpus().front(), static_cast<std::uint8_t *>(destination)}}, range, false,
                     DPU_XFER_DEFAULT);
}

dpu_error_t check_direction(const char *caller, dpu_xfer_t direction) {
    if (direction == DPU_XFER_TO_DPU || direction == DPU_XFER_FROM_DPU) return DPU_OK;
    return refuse(DPU_ERR_INVALID_MEMORY_TRANSFER,
                  "%s: direction %d is neither DPU_XFER_TO_DPU nor DPU_XFER_FROM_DPU", caller,
                  static_cast<int>(direction));
}

dpu_error_t push(dpu_set_t set, dpu_xfer_t direction, const Place &place, dpu_xfer_flags_t flags) {
    Selection selection(set);
    if (!selection) return DPU_ERR_INVALID_DPU_SET;
    if (dpu_error_t error = check_direction("dpu_push_xfer", direction); error != DPU_OK) return error;
    Range range;
    if (dpu_error_t error = find(selection, place, range); error != DPU_OK) return error;
    std::vector<Move> moves;
    for (dpu_t *dpu : selection.dpus()) {
        void *&buffer = dpu->buffer();
        if (!buffer) continue;
        moves.push_back({dpu, static_cast<std::uint8_t *>(buffer)});
        if (!(flags & DPU_XFER_NO_RESET)) buffer = nullptr;
    }
    return carry_out(selection, std::move(moves), range, direction == DPU_XFER_TO_DPU, flags);
}

// One DPU's part of a scattered transfer: its blocks, and its bytes in MRAM.
struct Scattered {
    dpu_t *dpu;
    std::vector<sg_block_info> blocks;
    std::vector<std::uint8_t> bytes;
};

// The function that gives the blocks, and a copy of its arguments.
struct Blocks {
    get_block_func_t function;
    std::vector<std::max_align_t> arguments;
    std::uint32_t most;
    bool may_be_shorter;
};

dpu_error_t collect(Blocks &blocks, std::uint32_t index, const Range &range, Scattered &part) {
    std::size_t bytes = 0;
    sg_block_info block = {};
    for (std::uint32_t number = 0; blocks.function(&block, index, number, blocks.arguments.data()); number++) {
        if (number >= blocks.most)
            return refuse(DPU_ERR_SG_TOO_MANY_BLOCKS,
                          "dpu_push_sg_xfer: DPU %u of the set has more than %u blocks (sgXferMaxBlocksPerDpu)", index,
                          blocks.most);
        if (block.length == 0) continue;
        if (!block.addr)
            return refuse(DPU_ERR_INVALID_MEMORY_TRANSFER, "dpu_push_sg_xfer: block %u of DPU %u has no address (NULL)",
                          number, index);
        bytes += block.length;
        part.blocks.push_back(block);
    }
    if (bytes > range.bytes || (bytes < range.bytes && !blocks.may_be_shorter))
        return refuse(DPU_ERR_SG_LENGTH_MISMATCH,
                      "dpu_push_sg_xfer: the blocks of DPU %u of the set are %zu bytes, the transfer has %zu", index,
                      bytes, range.bytes);
    return DPU_OK;
}

// `first`: the index in the set of the first of these DPUs, all of one rank.
dpu_error_t scatter(const std::vector<dpu_t *> &dpus, std::uint32_t first, Blocks &blocks, const Range &range,
                    bool to_dpu) {
    std::vector<Scattered> parts;
    for (dpu_t *dpu : dpus) {
        Scattered part = {dpu, {}, {}};
        if (dpu_error_t error = collect(blocks, first++, range, part); error != DPU_OK) return error;
        if (!part.blocks.empty()) parts.push_back(std::move(part));
    }
    std::vector<Move> moves;
    for (Scattered &part : parts) {
        part.bytes.resize(range.bytes);
        std::uint8_t *at = part.bytes.data();
        for (const sg_block_info &block : part.blocks) {
            if (to_dpu) std::memcpy(at, block.addr, block.length);
            at += block.length;
        }
        moves.push_back({part.dpu, part.bytes.data()});
    }
    move(moves, range, to_dpu);
    for (const Scattered &part : parts) {
        const std::uint8_t *at = part.bytes.data();
        for (const sg_block_info &block : part.blocks) {
            if (!to_dpu) std::memcpy(block.addr, at, block.length);
            at += block.length;
        }
    }
    return DPU_OK;
}

dpu_error_t push_scattered(dpu_set_t set, dpu_xfer_t direction, const Place &place, const get_block_t *info,
                           dpu_sg_xfer_flags_t flags) {
    Selection selection(set);
    if (!selection) return DPU_ERR_INVALID_DPU_SET;
    if (dpu_error_t error = check_direction("dpu_push_sg_xfer", direction); error != DPU_OK) return error;
    if (selection.one_dpu())
        return refuse(DPU_ERR_INTERNAL, "dpu_push_sg_xfer: a scattered transfer is to a set of ranks, not to one DPU");
    Range range;
    if (dpu_error_t error = find(selection, place, range); error != DPU_OK) return error;
    if (!in_mram(range.address))
        return refuse(DPU_ERR_SG_NOT_MRAM_SYMBOL, "dpu_push_sg_xfer: %s is in WRAM",
                      place.name ? place.name : "the symbol");
    std::uint32_t most = selection.allocation().profile.sg_blocks;
    if (most == 0)
        return refuse(DPU_ERR_SG_NOT_ACTIVATED,
                      "dpu_push_sg_xfer: the DPUs were not allocated with the profile \"sgXferEnable=true\"");
    if (!info || !info->f || (!info->args && info->args_size > 0))
        return no_buffer(place, "no function that gives blocks, or no arguments (NULL)");
    auto blocks = std::make_shared<Blocks>();
    *blocks = {info->f, {}, most, (flags & DPU_SG_XFER_DISABLE_LENGTH_CHECK) != 0};
    blocks->arguments.resize(info->args_size / sizeof(std::max_align_t) + 1);
    if (info->args_size > 0) std::memcpy(blocks->arguments.data(), info->args, info->args_size);
    std::uint32_t first = 0;
    auto job = [&](dpu_rank_t &rank) -> std::function<dpu_error_t()> {
        std::vector<dpu_t *> ours;
        for (dpu_t *dpu : selection.dpus())
            if (dpu->rank == &rank) ours.push_back(dpu);
        std::uint32_t index = first;
        first += static_cast<std::uint32_t>(ours.size());
        bool to_dpu = direction == DPU_XFER_TO_DPU;
        return [ours, index, blocks, range, to_dpu] { return scatter(ours, index, *blocks, range, to_dpu); };
    };
    if (flags & DPU_SG_XFER_ASYNC) return selection.enqueue(job);
    if (dpu_error_t error = selection.settle(); error != DPU_OK) return error;
    dpu_error_t error = DPU_OK;
    for (dpu_rank_t *rank : selection.ranks())
        if (dpu_error_t one = job(*rank)(); error == DPU_OK) error = one;
    return error;
}

} // namespace

extern "C" {

dpu_error_t dpu_copy_to(struct dpu_set_t dpu_set, const char *symbol_name, uint32_t symbol_offset, const void *src,
                        size_t length) {
    return broadcast(dpu_set, {named(symbol_name), {}, symbol_offset, length}, src, DPU_XFER_DEFAULT);
}

dpu_error_t dpu_copy_from(struct dpu_set_t dpu_set, const char *symbol_name, uint32_t symbol_offset, void *dst,
                          size_t length) {
    return copy_from(dpu_set, {named(symbol_name), {}, symbol_offset, length}, dst);
}

dpu_error_t dpu_copy_to_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol, uint32_t symbol_offset,
                               const void *src, size_t length) {
    return broadcast(dpu_set, {nullptr, symbol, symbol_offset, length}, src, DPU_XFER_DEFAULT);
}

dpu_error_t dpu_copy_from_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol, uint32_t symbol_offset,
                                 void *dst, size_t length) {
    return copy_from(dpu_set, {nullptr, symbol, symbol_offset, length}, dst);
}

dpu_error_t dpu_broadcast_to(struct dpu_set_t dpu_set, const char *symbol_name, uint32_t symbol_offset, const void *src,
                             size_t length, dpu_xfer_flags_t flags) {
    return broadcast(dpu_set, {named(symbol_name), {}, symbol_offset, length}, src, flags);
}

dpu_error_t dpu_broadcast_to_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol, uint32_t symbol_offset,
                                    const void *src, size_t length, dpu_xfer_flags_t flags) {
    return broadcast(dpu_set, {nullptr, symbol, symbol_offset, length}, src, flags);
}

dpu_error_t dpu_prepare_xfer(struct dpu_set_t dpu_set, void *buffer) {
    Selection selection(dpu_set);
    if (!selection) return DPU_ERR_INVALID_DPU_SET;
    dpu_error_t error = DPU_OK;
    for (dpu_t *dpu : selection.dpus()) {
        if (buffer && dpu->buffer()) error = DPU_ERR_TRANSFER_ALREADY_SET;
        dpu->buffer() = buffer;
    }
    return error == DPU_OK
               ? error
               : refuse(error, "dpu_prepare_xfer: a buffer was prepared already; the new one takes its place");
}

dpu_error_t dpu_push_xfer(struct dpu_set_t dpu_set, dpu_xfer_t xfer, const char *symbol_name, uint32_t symbol_offset,
                          size_t length, dpu_xfer_flags_t flags) {
    return push(dpu_set, xfer, {named(symbol_name), {}, symbol_offset, length}, flags);
}

dpu_error_t dpu_push_xfer_symbol(struct dpu_set_t dpu_set, dpu_xfer_t xfer, struct dpu_symbol_t symbol,
                                 uint32_t symbol_offset, size_t length, dpu_xfer_flags_t flags) {
    return push(dpu_set, xfer, {nullptr, symbol, symbol_offset, length}, flags);
}

dpu_error_t dpu_push_sg_xfer(struct dpu_set_t dpu_set, dpu_xfer_t xfer, const char *symbol_name, uint32_t symbol_offset,
                             size_t length, get_block_t *get_block_info, dpu_sg_xfer_flags_t flags) {
    return push_scattered(dpu_set, xfer, {named(symbol_name), {}, symbol_offset, length}, get_block_info, flags);
}

dpu_error_t dpu_push_sg_xfer_symbol(struct dpu_set_t dpu_set, dpu_xfer_t xfer, struct dpu_symbol_t symbol,
                                    uint32_t symbol_offset, size_t length, get_block_t *get_block_info,
                                    dpu_sg_xfer_flags_t flags) {
    return push_scattered(dpu_set, xfer, {nullptr, symbol, symbol_offset, length}, get_block_info, flags);
}
}
