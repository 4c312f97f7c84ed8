"""Programs for UPMEM's SDK are built in the image dpu-dev with the vendor's own commands, and run there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from toolchains.assembly import ensure
from toolchains.assembly.request import Request
from toolchains.engine.container import Container
from toolchains.system import paths

pytestmark = pytest.mark.docker

# In the form of public collections: one file of definitions for both sides, a marker for each configuration.
MAKEFILE = r"""
DPU_DIR := dpu
HOST_DIR := host
BUILDDIR ?= bin
NR_TASKLETS ?= 16
BL ?= 10
NR_DPUS ?= 1

define conf_filename
    ${BUILDDIR}/.NR_DPUS_$(1)_NR_TASKLETS_$(2)_BL_$(3).conf
endef
CONF := $(call conf_filename,${NR_DPUS},${NR_TASKLETS},${BL})

HOST_TARGET := ${BUILDDIR}/host_code
DPU_TARGET := ${BUILDDIR}/dpu_code

COMMON_INCLUDES := support
HOST_SOURCES := $(wildcard ${HOST_DIR}/*.c)
DPU_SOURCES := $(wildcard ${DPU_DIR}/*.c)

.PHONY: all clean test

__dirs := $(shell mkdir -p ${BUILDDIR})

COMMON_FLAGS := -Wall -Wextra -Werror -g -I${COMMON_INCLUDES}
HOST_FLAGS := ${COMMON_FLAGS} -std=c11 -O3 `dpu-pkg-config --cflags --libs dpu` -DNR_TASKLETS=${NR_TASKLETS} \
    -DNR_DPUS=${NR_DPUS} -DBL=${BL}
DPU_FLAGS := ${COMMON_FLAGS} -O2 -DNR_TASKLETS=${NR_TASKLETS} -DBL=${BL}

all: ${HOST_TARGET} ${DPU_TARGET}

${CONF}:
    $(RM) $(call conf_filename,*,*)
    touch ${CONF}

${HOST_TARGET}: ${HOST_SOURCES} ${COMMON_INCLUDES} ${CONF}
    gcc --std=c11 -o $@ ${HOST_SOURCES} ${HOST_FLAGS}

${DPU_TARGET}: ${DPU_SOURCES} ${COMMON_INCLUDES} ${CONF}
    dpu-upmem-dpurte-clang ${DPU_FLAGS} -o $@ ${DPU_SOURCES}

clean:
    $(RM) -r $(BUILDDIR)

test: all
    ./${HOST_TARGET}
"""
HOST = r"""
#include <dpu.h>
#include <stdio.h>
#include "common.h"
#ifndef DPU_BINARY
#define DPU_BINARY "./bin/dpu_code"
#endif
int main(void) {
    struct dpu_set_t set, dpu;
    uint32_t number;
    DPU_ASSERT(dpu_alloc(NR_DPUS, NULL, &set));
    DPU_ASSERT(dpu_load(set, DPU_BINARY, NULL));
    DPU_FOREACH(set, dpu, number) { DPU_ASSERT(dpu_copy_to(dpu, "first", 0, &number, sizeof number)); }
    DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
    DPU_FOREACH(set, dpu, number) {
        int32_t results[NR_TASKLETS];
        for (int i = 0; i < NR_TASKLETS; i++) results[i] = -1;
        DPU_ASSERT(dpu_copy_from(dpu, "results", 0, results, sizeof results));
        for (int i = 0; i < NR_TASKLETS; i++)
            if (results[i] != (int32_t)number + i * FACTOR) return 1;
    }
    DPU_ASSERT(dpu_free(set));
    printf("[OK] %d DPUs, %d tasklets\n", NR_DPUS, NR_TASKLETS);
    return 0;
}
"""
DEVICE = r"""
#include <defs.h>
#include <stdint.h>
#include "common.h"
__host uint32_t first;
__host int32_t results[NR_TASKLETS];
int main(void) {
    results[me()] = (int32_t)first + (int32_t)me() * FACTOR;
    return 0;
}
"""
# The host's project builds the DPU's, which has the SDK's toolchain file.
HOST_PROJECT = r"""
cmake_minimum_required(VERSION 3.13)
project(example C CXX)
include(ExternalProject)
include($ENV{UPMEM_HOME}/share/upmem/cmake/include/host/DpuHost.cmake)
ExternalProject_Add(dpu_code SOURCE_DIR ${CMAKE_SOURCE_DIR}/dpu BINARY_DIR ${CMAKE_BINARY_DIR}/dpu INSTALL_COMMAND ""
    CMAKE_ARGS -DCMAKE_TOOLCHAIN_FILE=$ENV{UPMEM_HOME}/share/upmem/cmake/dpu.cmake -DNR_TASKLETS=8)
link_directories("${DPU_HOST_LINK_DIRECTORIES}")
foreach(language c cpp)
    add_executable(host_${language} host/app.${language})
    target_include_directories(host_${language} PUBLIC ${DPU_HOST_INCLUDE_DIRECTORIES} support)
    target_compile_definitions(host_${language} PUBLIC NR_TASKLETS=8 NR_DPUS=3
        DPU_BINARY="${CMAKE_BINARY_DIR}/dpu/dpu_code")
    target_link_libraries(host_${language} ${DPU_HOST_LIBRARIES})
endforeach()
"""
DEVICE_PROJECT = r"""
cmake_minimum_required(VERSION 3.13)
project(dpu_code C)
add_executable(dpu_code task.c)
target_include_directories(dpu_code PUBLIC ../support)
target_compile_definitions(dpu_code PUBLIC NR_TASKLETS=${NR_TASKLETS})
target_link_options(dpu_code PUBLIC -DNR_TASKLETS=${NR_TASKLETS})
"""
SHORT_VECTOR = r"""
#include <dpu>
#include <cstring>
int main() {
    auto set = dpu::DpuSet::allocate(1);
    set.load("bin/words");
    try {
        set.copy(DPU_MRAM_HEAP_POINTER_NAME, std::vector<uint32_t>(3), 16);
    } catch (const dpu::DpuError &error) {
        return std::strstr(error.what(), "copy of 16 bytes with a vector that has 12") ? 0 : 1;
    }
    return 2;
}
"""
NO_LANGUAGES = "cmake_minimum_required(VERSION 3.16)\nproject(p)\nadd_executable(words words.c)\n"
FILES = {
    "Makefile": MAKEFILE.replace("\n    ", "\n\t"),
    "CMakeLists.txt": HOST_PROJECT,
    "support/common.h": "#define FACTOR 7\n",
    "host/app.c": HOST,
    "host/app.cpp": HOST,
    "dpu/task.c": DEVICE,
    "dpu/CMakeLists.txt": DEVICE_PROJECT,
    "plain/CMakeLists.txt": NO_LANGUAGES,
    "plain/words.c": "int main(void) { return 0; }\n",
    "other/short.cpp": SHORT_VECTOR,
}
# One program, and what hosts in C++ and in Python do with it.
FILES |= {f"other/{path.name}": path.read_text() for path in (paths.ROOT / "sdks/upmem/host/tests").glob("*.*")}
FOLDER = "/tmp/example"
BUILD = "dpu-upmem-dpurte-clang -O2 -DNR_TASKLETS=1 -o bin/words words.c"


@pytest.fixture(scope="module")
def container(request: pytest.FixtureRequest) -> Iterator[Container]:
    """Yield a container of the image, with the program's files."""
    drift = request.config.getoption("--allow-drift")
    engine, image = ensure.ensure_image(Request.read("dpu-dev", allow_drift=drift))
    with engine.container(image.name) as found:
        for name, text in FILES.items():
            place = f"{FOLDER}/{name}"
            found.call(["sh", "-c", 'mkdir -p "${0%/*}" && printf %s "$1" > "$0"', place, text.lstrip("\n")])
        yield found


@pytest.mark.parametrize("options, line", [("", "1 DPUs, 16 tasklets"), ("NR_DPUS=4 NR_TASKLETS=11", "4 DPUs, 11")])
def test_a_makefile_runs_as_it_is(container: Container, options: str, line: str) -> None:
    said = container.call(["sh", "-c", f"make clean && make test {options}"], cwd=FOLDER)
    assert f"[OK] {line}" in said


def test_cmake_builds_both_sides_in_c_and_cpp(container: Container) -> None:
    steps = "cmake -S . -B build && cmake --build build && build/host_c && build/host_cpp"
    said = container.call(["sh", "-c", steps], cwd=FOLDER)
    assert said.count("[OK] 3 DPUs, 8 tasklets") == 2


def test_pkg_config_says_what_the_sdks_own_says(container: Container) -> None:
    words = "--cflags --libs dpu"
    said = container.call(["sh", "-c", f"pkg-config {words} && dpu-pkg-config {words}"]).splitlines()
    prefix = container.call(["sh", "-c", "echo $UPMEM_HOME"]).strip()
    assert [line.replace(f"{prefix}/share/pkgconfig/../..", prefix).split() for line in said] == 2 * [
        [f"-I{prefix}/include/dpu", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-ldpu"]
    ]


@pytest.mark.parametrize("standard", ["c++11", "c++20"])
def test_hosts_use_the_sdks_cpp_interface(container: Container, standard: str) -> None:
    flags = f"-std={standard} -Wall -Wextra -Werror -O1"
    compiler = f"g++ {flags} sets.cpp -o sets $(dpu-pkg-config --cflags --libs dpu) -pthread"
    said = container.call(["sh", "-c", f"mkdir -p bin && {BUILD} && {compiler} && ./sets"], cwd=f"{FOLDER}/other")
    assert said.splitlines()[-1] == "[OK]"


def test_hosts_use_the_sdks_python_module(container: Container) -> None:
    said = container.call(["sh", "-c", f"mkdir -p bin && {BUILD} && python sets.py"], cwd=f"{FOLDER}/other")
    assert said.splitlines()[-1] == "[OK]"


def test_programs_link_the_library_of_messages_by_its_name(container: Container) -> None:
    link = "gcc -DNR_TASKLETS=1 -DNR_DPUS=1 -I../support app.c -o app $(dpu-pkg-config --cflags --libs dpuverbose)"
    said = container.call(["sh", "-c", f"{link} && ldd app && dpu-pkg-config --libs dpu"], cwd=f"{FOLDER}/host")
    assert said.count("libdpu.so =>") == 1 and "not found" not in said and "dpuverbose" not in said


def test_a_copy_beyond_a_vector_says_both_sizes(container: Container) -> None:
    compiler = "g++ short.cpp -o short $(dpu-pkg-config --cflags --libs dpu) -pthread"
    container.call(["sh", "-c", f"mkdir -p bin && {BUILD} && {compiler} && ./short"], cwd=f"{FOLDER}/other")


def test_a_cmake_project_of_a_dpu_program_needs_no_languages(container: Container) -> None:
    toolchain = "-DCMAKE_TOOLCHAIN_FILE=$UPMEM_HOME/share/upmem/cmake/dpu.cmake"
    steps = f"cmake -S . -B made {toolchain} && cmake --build made"
    container.call(["sh", "-c", steps], cwd=f"{FOLDER}/plain")
