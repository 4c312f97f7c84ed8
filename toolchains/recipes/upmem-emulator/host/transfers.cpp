// The API's transfers.
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

dpu_error_t push(dpu_set_t set, dpu_xfer_t direction, const Place &place, dpu_xfer_flags_t flags) {
    Selection selection(set);
    if (!selection) return DPU_ERR_INVALID_DPU_SET;
    if (direction != DPU_XFER_TO_DPU && direction != DPU_XFER_FROM_DPU)
        return refuse(DPU_ERR_INVALID_MEMORY_TRANSFER,
                      "dpu_push_xfer: direction %d is neither DPU_XFER_TO_DPU nor DPU_XFER_FROM_DPU",
                      static_cast<int>(direction));
    Range range;
    if (dpu_error_t error = find(selection, place, range); error != DPU_OK) return error;
    std::vector<Move> moves;
    for (dpu_t *dpu : selection.dpus()) {
        if (!dpu->buffer) continue;
        moves.push_back({dpu, static_cast<std::uint8_t *>(dpu->buffer)});
        if (!(flags & DPU_XFER_NO_RESET)) dpu->buffer = nullptr;
    }
    return carry_out(selection, std::move(moves), range, direction == DPU_XFER_TO_DPU, flags);
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
        if (buffer && dpu->buffer) error = DPU_ERR_TRANSFER_ALREADY_SET;
        dpu->buffer = buffer;
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
}
