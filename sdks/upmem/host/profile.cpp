// Which keys of the SDK's profiles are known, and what they mean here.
#include "profile.h"

#include <algorithm>
#include <cstdlib>
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

// An assumption: the SDK's own number is not published.
constexpr std::uint32_t SG_BLOCKS = 64;

} // namespace

dpu_error_t read_profile(const char *profile, Profile &result) {
    std::string rest = profile ? profile : "";
    std::uint32_t blocks = SG_BLOCKS;
    bool scattered = false;
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
        if (key == "sgXferEnable") scattered = value == "true";
        if (key == "sgXferMaxBlocksPerDpu" && (blocks = std::strtoul(value.c_str(), nullptr, 0)) == 0)
            return refuse(DPU_ERR_INVALID_PROFILE, "profile \"%s\": %s is no number of blocks", profile, value.c_str());
        if (key != "backend" || value == "simulator") continue;
        if (value == "hw" || value == "modelsim")
            return refuse(DPU_ERR_ALLOCATION,
                          "profile \"%s\": there are no DPUs of backend \"%s\", this is the emulator", profile,
                          value.c_str());
        return refuse(DPU_ERR_INVALID_PROFILE, "profile \"%s\": there is no backend \"%s\"", profile, value.c_str());
    }
    result.sg_blocks = scattered ? blocks : 0;
    return DPU_OK;
}
