# Conan's settings for native parts: the builder's own gcc, of whichever version its suite has, optimised, through Ninja.
{% set compiler, version, _ = detect_api.detect_gcc_compiler("gcc") %}
[settings]
os=Linux
arch=x86_64
compiler={{ compiler }}
compiler.version={{ detect_api.default_compiler_version(compiler, version) }}
compiler.libcxx=libstdc++11
compiler.cppstd=17
build_type=Release

[conf]
tools.cmake.cmaketoolchain:generator=Ninja
tools.cmake.cmaketoolchain:user_toolchain=["{{ profile_dir }}/foundry.cmake"]
