# To be sourced: puts this SDK's tools and libraries on the paths. "simulator" is the only backend, and the default.
case ${1:-simulator} in
simulator)
    UPMEM_HOME=$(cd "$(dirname -- "${BASH_SOURCE[0]:-$0}")" && pwd)
    export UPMEM_HOME
    export PATH="$UPMEM_HOME/bin:$PATH"
    export PYTHONPATH="$UPMEM_HOME/share/upmem/python${PYTHONPATH:+:$PYTHONPATH}"
    export LD_LIBRARY_PATH="$UPMEM_HOME/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    ;;
*)
    echo "upmem_env.sh: there are no DPUs of backend '$1': this is the emulator" >&2
    ;;
esac
