"""Write the part of Khronos's vulkan_core.h that packed kernels are compiled with, and check that it is a part of it.

A packed folder is built where no headers of Vulkan are. All of them are 1.3 MB; what vulkan.c names, and what that
needs, is a twentieth. `PYTHONPATH=. python tests/tree/test_vulkan_header.py` writes the file, after a source names
another thing of Vulkan. It takes the header of the package that images' libraries are compiled with.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from toolchains.fetch.store import Store
from toolchains.lockfile import lock
from toolchains.system import paths

CORE = paths.BACKENDS / "core/src/foundry_core"
FILE = CORE / "packed/vulkan/vulkan.h"
_SOURCES = ("vulkan/vulkan.c", "packed/vulkan_road.c", "packed/vulkan_needs.h")
_HEAD = """\
/* A part of Khronos's vulkan_core.h, for 64-bit Linux, that tests/tree/test_vulkan_header.py wrote.
 *
 * Copyright 2015-2025 The Khronos Group Inc.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef VULKAN_CORE_H_
#define VULKAN_CORE_H_

#include <stddef.h>
#include <stdint.h>

#define VKAPI_ATTR
#define VKAPI_CALL
#define VKAPI_PTR
#define VK_NULL_HANDLE ((void *)0)
#define VK_DEFINE_HANDLE(object) typedef struct object##_T *object;
#define VK_DEFINE_NON_DISPATCHABLE_HANDLE(object) typedef struct object##_T *object;

"""
_DECLARATION = re.compile(
    r"^(?:#define (?P<macro>VK_(?!NULL_HANDLE|DEFINE)\w+)[ (](?:.*\\\n)*.*"
    r"|VK_DEFINE_(?:NON_DISPATCHABLE_)?HANDLE\((?P<handle>\w+)\)"
    r"|typedef (?:struct|union|enum) \w+ \{\n(?:.*\n)*?\} (?P<body>\w+);"
    r"|typedef [^;{]*?\(VKAPI_PTR \*(?P<pointer>\w+)\)\([^;]*\);"
    r"|typedef [^;{(]*?(?P<other>\w+);)$",
    re.MULTILINE,
)
_NAME = re.compile(r"\b(?:Vk|VK_|PFN_vk)\w+")


def declarations(header: str) -> dict[str, str]:
    """Return the declarations of a header by their names, in its order."""
    found: dict[str, str] = {}
    for match in _DECLARATION.finditer(re.sub(r"[ \t]*//.*", "", header)):
        (name,) = (each for each in match.groupdict().values() if each)
        found.setdefault(name, match[0])
    return found


def select(header: str, named: set[str]) -> Iterator[str]:
    """Yield the declarations of these names, and of all that they need; of an enumeration only what is needed."""
    known = declarations(header)
    enumerators = {
        name: enumeration
        for enumeration, text in known.items()
        if text.startswith("typedef enum")
        for name in re.findall(r"^ +(VK_\w+) =", text, re.MULTILINE)
    }
    needed: set[str] = set()
    waiting = set(named)
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        needed.add(name)
        if name in enumerators:
            (value,) = re.findall(rf"^ +{name} = (.*?),?$", known[enumerators[name]], re.MULTILINE)
            waiting |= {enumerators[name], *_NAME.findall(value)}
        elif name in known and not known[name].startswith("typedef enum"):
            waiting |= set(_NAME.findall(known[name]))
    for name, text in known.items():
        if name in needed and text.startswith("typedef enum"):
            rows = [row for row in text.split("\n")[1:-1] if row.split(" = ")[0].strip() in needed]
            # The size that the header gives an enumeration.
            rows.append(f"    {re.sub('(?<=[a-z0-9])(?=[A-Z])', '_', name).upper()}_MAX_ENUM_ = 0x7FFFFFFF")
            yield "\n".join([text.split("\n")[0], *rows, f"}} {name};"])
        elif name in needed:
            yield text


def text(header: str) -> str:
    """Return what is in the file."""
    named: set[str] = set()
    for path in _SOURCES:
        source = (CORE / path).read_text(encoding="utf-8")
        named |= set(_NAME.findall(source)) | {f"PFN_vk{name}" for name in re.findall(r"\bX\((\w+)\)", source)}
    return "\n".join([_HEAD, *select(header, named), "#endif", ""])


def vulkan_core() -> str:
    """Return Khronos's header.

    Raises:
        FetchError: its package is not in the store and cannot be fetched.
    """
    locked, store = lock.load().targets["spirv-vulkan"], Store(paths.cache())
    assert locked.builder
    (deb,) = (deb for deb in locked.builder.debs if deb.name == "libvulkan-dev")
    store.fetch([deb], suite=locked.suite, python=locked.python)
    with TemporaryDirectory() as unpacked:
        subprocess.run(["dpkg-deb", "-x", store.path(deb), unpacked], check=True)
        return Path(unpacked, "usr/include/vulkan/vulkan_core.h").read_text(encoding="utf-8")


def test_enumerations_are_reduced_to_what_is_named_and_what_that_needs() -> None:
    header = "\n".join(
        (
            "#define VK_MOST 16U // of all",
            "#define VK_UNUSED 1",
            "VK_DEFINE_HANDLE(VkThing)",
            "typedef uint32_t VkFlags;",
            "typedef enum VkKind {",
            "    VK_KIND_ONE = 1,",
            "    VK_KIND_TWO = 2,",
            "    VK_KIND_TWO_EXT = VK_KIND_TWO,",
            "    VK_KIND_MAX_ENUM = 0x7FFFFFFF",
            "} VkKind;",
            "typedef struct VkInfo {",
            "    VkKind    kind[VK_MOST];",
            "} VkInfo;",
            "typedef VkResult (VKAPI_PTR *PFN_vkDo)(VkThing thing, const VkInfo* info);",
            "typedef void (VKAPI_PTR *PFN_vkOther)(VkFlags flags);",
        )
    )
    assert list(select(header, {"PFN_vkDo", "VK_KIND_TWO_EXT"})) == [
        "#define VK_MOST 16U",
        "VK_DEFINE_HANDLE(VkThing)",
        "typedef enum VkKind {\n    VK_KIND_TWO = 2,\n    VK_KIND_TWO_EXT = VK_KIND_TWO,\n"
        "    VK_KIND_MAX_ENUM_ = 0x7FFFFFFF\n} VkKind;",
        "typedef struct VkInfo {\n    VkKind    kind[VK_MOST];\n} VkInfo;",
        "typedef VkResult (VKAPI_PTR *PFN_vkDo)(VkThing thing, const VkInfo* info);",
    ]


@pytest.mark.network
def test_header_of_packed_kernels_is_the_part_of_khronos_header_that_they_need() -> None:
    assert FILE.read_text(encoding="utf-8") == text(vulkan_core()), f"python {Path(__file__).name}"


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(text(vulkan_core()), encoding="utf-8")
