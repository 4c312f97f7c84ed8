// Modelled time of one DPU: a pipeline that its runnable tasklets share, and a DMA engine.
//
// A tasklet issues an instruction at most every REENTRY (11) cycles, and the pipeline one a cycle in all: with k
// tasklets in it, each issues 1 / max(11, k) instructions a cycle. As all of them progress alike, "instructions issued
// by each so far" is one number for the whole DPU, the progress, and a tasklet that has n instructions to its next
// event has that event when the progress is n larger than now.
//
// Both numbers are fixed-point with 16 fractional bits, so that a launch takes the same cycles on any machine.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../model/cycles.h"

class Pipeline {
  public:
    static constexpr int FRACTION = 16;
    using Time = std::uint64_t;     // cycles << FRACTION
    using Progress = std::uint64_t; // instructions << FRACTION

    Time now() const { return now_; }
    std::uint64_t cycles() const { return (now_ + (Time{1} << FRACTION) - 1) >> FRACTION; }

    // When `instructions` more have been issued by a tasklet that is in the pipeline from now on.
    Progress after(std::uint64_t instructions) const { return progress_ + (instructions << FRACTION); }

    // When the progress reaches `target`, if the number of tasklets in the pipeline stays.
    Time time_of(Progress target, unsigned tasklets) const { return now_ + (target - progress_) * share(tasklets); }

    void advance_to_progress(Progress target, unsigned tasklets) {
        now_ = time_of(target, tasklets);
        progress_ = target;
    }
    void advance_to_time(Time time, unsigned tasklets) {
        progress_ += (time - now_) / share(tasklets);
        now_ = time;
    }

  private:
    static std::uint64_t share(unsigned tasklets) { return std::max<std::uint64_t>(model::REENTRY, tasklets); }

    Time now_ = 0;
    Progress progress_ = 0;
};
