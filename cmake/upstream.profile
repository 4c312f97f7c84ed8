# Conan's settings for upstream's own projects: the newest clang with lld of the builder, as upstream.cmake finds it.
{% set found = namespace(llvm="") %}
{% for name in os.listdir("/usr/lib") | sort if name.startswith("llvm-") and os.path.exists("/usr/lib/" + name + "/bin/clang++") %}
{% set found.llvm = "/usr/lib/" + name %}
{% endfor %}
{% set compiler, version, _ = detect_api.detect_clang_compiler(found.llvm + "/bin/clang") %}
[settings]
os=Linux
arch=x86_64
compiler={{ compiler }}
compiler.version={{ detect_api.default_compiler_version(compiler, version) }}
compiler.libcxx=libstdc++11
compiler.cppstd=17
build_type=Release
