// The API's sets: dpu_alloc, dpu_free, numbers, iteration, and the DPUs and ranks themselves.
#include <dpu.h>
#include <dpu_management.h>

#include "machine.h"
#include "profile.h"
#include "report.h"

namespace {

constexpr std::uint32_t DPUS_PER_SLICE = 8;

dpu_error_t allocate(std::uint32_t wanted, std::uint32_t dpus_each, const char *profile, dpu_set_t *set) {
    if (!set) return refuse(DPU_ERR_INVALID_DPU_SET, "dpu_alloc: no place for the set");
    Profile settings;
    if (dpu_error_t error = read_profile(profile, settings); error != DPU_OK) return error;
    std::uint64_t dpus = wanted == DPU_ALLOCATE_ALL ? machine::free_dpus() : std::uint64_t{wanted} * dpus_each;
    return machine::allocate(static_cast<std::uint32_t>(std::min<std::uint64_t>(dpus, UINT32_MAX)), settings, *set);
}

void place(dpu_set_iterator_t &at) {
    const dpu_set_t &set = at.set;
    if (set.kind == DPU_SET_DPU) {
        at.has_next = at.rank == 0;
        at.next = set;
        return;
    }
    at.has_next = at.rank < set.list.nr_ranks;
    if (!at.has_next) return;
    at.next.kind = DPU_SET_DPU;
    at.next.dpu = &set.list.ranks[at.rank]->dpus[at.dpu];
}

// An iteration over what is no set, or a freed one, has no steps.
bool iterable(const dpu_set_t *set) {
    if (set && machine::find(*set)) return true;
    refuse(DPU_ERR_INVALID_DPU_SET, "DPU_FOREACH: this is no set of DPUs, or it has been freed");
    return false;
}

void place_rank(dpu_set_iterator_t &at) {
    const dpu_set_t &set = at.set;
    at.has_next = at.rank < (set.kind == DPU_SET_DPU ? 1 : set.list.nr_ranks);
    at.next = set;
    if (!at.has_next || set.kind == DPU_SET_DPU) return;
    at.next.list.nr_ranks = 1;
    at.next.list.ranks = set.list.ranks + at.rank;
}

} // namespace

extern "C" {

dpu_error_t dpu_alloc(uint32_t nr_dpus, const char *profile, struct dpu_set_t *dpu_set) {
    return allocate(nr_dpus, 1, profile, dpu_set);
}

dpu_error_t dpu_alloc_ranks(uint32_t nr_ranks, const char *profile, struct dpu_set_t *dpu_set) {
    return allocate(nr_ranks, shared::DPUS_PER_RANK, profile, dpu_set);
}

dpu_error_t dpu_free(struct dpu_set_t dpu_set) { return machine::release(dpu_set); }

dpu_error_t dpu_get_nr_ranks(struct dpu_set_t dpu_set, uint32_t *nr_ranks) {
    if (!machine::find(dpu_set))
        return refuse(DPU_ERR_INVALID_DPU_SET, "dpu_get_nr_ranks: this is no set of DPUs, or it has been freed");
    if (!nr_ranks) return refuse(DPU_ERR_INTERNAL, "dpu_get_nr_ranks: no place for the number (NULL)");
    *nr_ranks = dpu_set.kind == DPU_SET_DPU ? 1 : dpu_set.list.nr_ranks;
    return DPU_OK;
}

dpu_error_t dpu_get_nr_dpus(struct dpu_set_t dpu_set, uint32_t *nr_dpus) {
    if (!machine::find(dpu_set))
        return refuse(DPU_ERR_INVALID_DPU_SET, "dpu_get_nr_dpus: this is no set of DPUs, or it has been freed");
    if (!nr_dpus) return refuse(DPU_ERR_INTERNAL, "dpu_get_nr_dpus: no place for the number (NULL)");
    *nr_dpus = 0;
    if (dpu_set.kind == DPU_SET_DPU)
        *nr_dpus = 1;
    else
        for (uint32_t i = 0; i < dpu_set.list.nr_ranks; i++)
            *nr_dpus += static_cast<uint32_t>(dpu_set.list.ranks[i]->dpus.size());
    return DPU_OK;
}

struct dpu_set_iterator_t dpu_set_dpus(const struct dpu_set_t *set) {
    dpu_set_iterator_t at = {};
    if (!iterable(set)) return at;
    at.set = *set;
    place(at);
    return at;
}

void dpu_set_dpus_next(struct dpu_set_iterator_t *iterator) {
    if (!iterator || !iterator->has_next) return;
    iterator->count++;
    iterator->dpu++;
    bool rank_ends =
        iterator->set.kind == DPU_SET_DPU || iterator->dpu == iterator->set.list.ranks[iterator->rank]->dpus.size();
    if (rank_ends) {
        iterator->dpu = 0;
        iterator->rank++;
    }
    place(*iterator);
}

struct dpu_set_iterator_t dpu_set_ranks(const struct dpu_set_t *set) {
    dpu_set_iterator_t at = {};
    if (!iterable(set)) return at;
    at.set = *set;
    place_rank(at);
    return at;
}

void dpu_set_ranks_next(struct dpu_set_iterator_t *iterator) {
    if (!iterator || !iterator->has_next) return;
    iterator->count++;
    iterator->rank++;
    place_rank(*iterator);
}

struct dpu_t *dpu_from_set(struct dpu_set_t set) { return set.kind == DPU_SET_DPU ? set.dpu : nullptr; }

struct dpu_rank_t *dpu_get_rank(struct dpu_t *dpu) { return dpu->rank; }

struct dpu_t *dpu_get(struct dpu_rank_t *rank, dpu_slice_id_t slice_id, dpu_member_id_t dpu_id) {
    std::uint32_t number = slice_id * DPUS_PER_SLICE + dpu_id;
    return dpu_id < DPUS_PER_SLICE && number < rank->dpus.size() ? &rank->dpus[number] : nullptr;
}

dpu_id_t dpu_get_rank_id(struct dpu_rank_t *rank) { return rank->number; }

dpu_id_t dpu_get_id(struct dpu_t *dpu) {
    return dpu->rank->number << 16 | std::uint32_t{dpu_get_slice_id(dpu)} << 8 | dpu_get_member_id(dpu);
}

dpu_slice_id_t dpu_get_slice_id(struct dpu_t *dpu) { return static_cast<dpu_slice_id_t>(dpu->number / DPUS_PER_SLICE); }

dpu_member_id_t dpu_get_member_id(struct dpu_t *dpu) {
    return static_cast<dpu_member_id_t>(dpu->number % DPUS_PER_SLICE);
}
}
