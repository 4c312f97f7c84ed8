// Which keys of the SDK's profiles are known, and what they mean here: nothing but the backend is looked at.
#include "profile.h"

#include <algorithm>
#include <string>

#include "report.h"

namespace {

const char *const KEYS[] = {
    "backend", "chipId", "clockDivision", "fckFrequency", "cycleAccurate", "enableProfiling", "profilingDpuId",
    "profilingSliceId", "mcountAddress", "retMcountAddress", "threadProfilingAddress", "mramAccessByDpuOnly",
    "disabledMask", "disableSafeChecks", "disableMuxSwitch", "disableResetOnAlloc", "cmdsBufferSize",
    "dispatchOnAllRanks", "nrThreadsPerRank", "nrThreadsPerDpu", "nrJobsPerRank", "nrThreadsPerPool", "nrDpusPerCi",
    "regionMode", "sgXferEnable", "sgXferMaxBlocksPerDpu", "mramSize", "wramSize", "iramSize", "doProfiling",
    "profileInstruction", "profileDma", "profileMemory", "profileIla",
};

} // namespace

dpu_error_t check_profile(const char *profile) {
    std::string rest = profile ? profile : "";
    while (!rest.empty()) {
        std::size_t comma = rest.find(',');
        std::string pair = rest.substr(0, comma);
        rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
        if (pair.empty()) continue;
        std::size_t equals = pair.find('=');
        std::string key = pair.substr(0, equals), value = equals == std::string::npos ? "" : pair.substr(equals + 1);
        if (equals == std::string::npos || value.empty())
            return refuse(DPU_ERR_INVALID_PROFILE, "profile \"%s\": \"%s\" is not key=value", profile, pair.c_str());
        if (std::none_of(std::begin(KEYS), std::end(KEYS), [&](const char *known) { return key == known; }))
            return refuse(DPU_ERR_INVALID_PROFILE, "profile \"%s\": there is no key \"%s\"", profile, key.c_str());
        if (key != "backend" || value == "simulator") continue;
        if (value == "hw" || value == "modelsim")
            return refuse(DPU_ERR_ALLOCATION,
                          "profile \"%s\": there are no DPUs of backend \"%s\", this is the emulator", profile,
                          value.c_str());
        return refuse(DPU_ERR_INVALID_PROFILE, "profile \"%s\": there is no backend \"%s\"", profile, value.c_str());
    }
    return DPU_OK;
}
