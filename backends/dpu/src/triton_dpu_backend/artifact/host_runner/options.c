/* The command line. */

static void usage(FILE *file, const char *name)
{
    fprintf(file,
        "usage: %s [--nr-dpus N] [--arg IDX=VAL ...] [--in IDX=PATH ...] [--out IDX=PATH ...]\n\n"
        "Runs the Triton kernel %s on DPUs. IDX is a parameter's index:\n\n",
        name, KERNEL);
    for (int i = 0; i < COUNT; i++) {
        const struct parameter *parameter = &parameters[i];
        if (parameter->kind == POINTER)
            fprintf(file, "  %2d  array of %s%s\n", i, parameter->type, parameter->is_out ? ", output" : "");
        else if (parameter->kind != INTERNAL)
            fprintf(file, "  %2d  %s\n", i, parameter->type);
    }
    fprintf(file,
        "\n"
        "  --arg IDX=VAL    value of a scalar; all of them must be given\n"
        "  --in IDX=PATH    raw elements of an array that the kernel reads, host byte order\n"
        "  --fill IDX=VAL   every element of it instead. Without any --in and --fill the run is a trial: inputs count\n"
        "                   up, element i is i %% 100 + IDX, and the first results are printed\n"
        "  --out IDX=PATH   write an array as it is after the launch; elements that no program wrote are what --in or\n"
        "                   --fill made them, else 0x%02x%02x, a NaN in each type of float\n"
        "  --len IDX=N      elements of an array. Without it: as many as --in has, else as many as the programs\n"
        "                   reach, else the value of the only integer scalar\n"
        "  --nr-dpus N      DPUs to use; default %" PRIu32 "%s\n"
        "  --grid X[,Y[,Z]] programs to run. %s\n"
        "  --help           this\n\n"
        "Each DPU gets a run of programs of about the same length, and of each array the part that they reach; all of\n"
        "it where that depends on data.\n",
        shards_poison[1], shards_poison[0], (uint32_t)DEFAULT_DPUS, DEFAULT_DPUS_FROM,
        HAS_BLOCK ? "Default: as many as have something to store" : "Must be given: it does not follow from --arg");
}

static int64_t integer(const char *text, const char *what, int64_t least, uint64_t most)
{
    char *end;
    errno = 0;
    int64_t value;
    if (*text == '-') {
        value = strtoll(text, &end, 0);
        if (!errno && value < least)
            errno = ERANGE;
    } else {
        uint64_t bits = strtoull(text, &end, 0);
        value = (int64_t)bits;
        if (!errno && (bits > most || (least > 0 && bits < (uint64_t)least)))
            errno = ERANGE;
    }
    if (end == text || *end)
        fail("%s: %s is not an integer", what, text);
    if (errno)
        fail("%s: %s is not between %" PRId64 " and %" PRIu64, what, text, least, most);
    return value;
}

/* Of so many bits, signed or unsigned, which the kernel's IR does not tell apart; read as a signed one. */
static int64_t integer_of(int bits, const char *text, const char *what)
{
    int64_t value = integer(text, what, INT64_MIN >> (64 - bits), UINT64_MAX >> (64 - bits));
    return (int64_t)((uint64_t)value << (64 - bits)) >> (64 - bits);
}

static double floating(const char *text, const char *what)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end)
        fail("%s: %s is not a number", what, text);
    return value;
}

/* IDX=VALUE; returns the index. */
static int assignment(const char *option, const char *text, const char **value)
{
    const char *sign = strchr(text, '=');
    char *end;
    long index = strtol(text, &end, 10);
    if (!sign || end != sign || end == text || !sign[1])
        fail("--%s %s: write --%s IDX=VALUE, such as --%s 0=...", option, text, option, option);
    if (index < 0 || index >= COUNT || parameters[index].kind == INTERNAL)
        fail("--%s %s: the kernel %s has no parameter %ld that can be set; see --help", option, text, KERNEL, index);
    int is_scalar = strcmp(option, "arg") == 0;
    if (is_scalar == is_pointer((int)index))
        fail("--%s %s: parameter %ld is %s; see --help", option, text, index,
             is_pointer((int)index) ? "an array: give it --in, --fill or --out" : "a scalar: give it --arg");
    *value = sign + 1;
    return (int)index;
}

static void set_scalar(int index, const char *text)
{
    const struct parameter *parameter = &parameters[index];
    char what[32];
    snprintf(what, sizeof what, "--arg %d", index);
    given[index] = 1;
    if (parameter->kind == FLOAT)
{
        double number = floating(text, what);
        float single = (float)number;
        arguments[index].bytes = (uint64_t)parameter->bytes;
        memcpy(&arguments[index].bits, parameter->bytes == 4 ? (void *)&single : (void *)&number, (size_t)parameter->bytes);
    }    else {
        arguments[index].integer = integer_of(8 * parameter->bytes, text, what);
        arguments[index].bytes = (uint64_t)parameter->bytes;
        memcpy(&arguments[index].bits, &arguments[index].integer, (size_t)parameter->bytes);
    }
}

static void set_grid(const char *text)
{
    char part[3][32] = {"", "1", "1"};
    int end = 0;
    int parts = sscanf(text, "%31[0-9]%n,%31[0-9]%n,%31[0-9]%n", part[0], &end, part[1], &end, part[2], &end);
    int64_t programs = 1;
    if (parts < 1 || text[end])
        fail("--grid %s: write --grid X, X,Y or X,Y,Z", text);
    for (int axis = 0; axis < 3; axis++) {
        launch.grid[axis] = (uint32_t)integer(part[axis], "--grid", 1, SHARDS_MOST_PROGRAMS);
        programs *= launch.grid[axis];
        if (programs > SHARDS_MOST_PROGRAMS)
            fail("--grid %s: more than %" PRId64 " programs", text, SHARDS_MOST_PROGRAMS);
    }
}

static void parse(int count, char **words)
{
    static const struct option options[] = {
        {"nr-dpus", required_argument, 0, 'd'}, {"arg", required_argument, 0, 'a'},  {"len", required_argument, 0, 'l'},
        {"in", required_argument, 0, 'i'},      {"fill", required_argument, 0, 'f'}, {"out", required_argument, 0, 'o'},
        {"grid", required_argument, 0, 'g'},    {"help", no_argument, 0, 'h'},       {0, 0, 0, 0},
    };
    const char *value;
    int option;
    while ((option = getopt_long(count, words, "", options, 0)) != -1) {
        switch (option) {
        case 'd':
            nr_dpus = (uint32_t)integer(optarg, "--nr-dpus", 1, MOST_DPUS);
            break;
        case 'a':
            set_scalar(assignment("arg", optarg, &value), strchr(optarg, '=') + 1);
            break;
        case 'l': {
            int index = assignment("len", optarg, &value);
            memories[index].bytes = integer(value, "--len", 0, INT64_MAX / 8) * parameters[index].bytes;
            break;
        }
        case 'i':
            files[assignment("in", optarg, &value)].in = strchr(optarg, '=') + 1;
            break;
        case 'f':
            files[assignment("fill", optarg, &value)].fill = strchr(optarg, '=') + 1;
            break;
        case 'o':
            files[assignment("out", optarg, &value)].out = strchr(optarg, '=') + 1;
            break;
        case 'g':
            set_grid(optarg);
            break;
        case 'h':
            usage(stdout, words[0]);
            exit(EXIT_SUCCESS);
        default:
            fprintf(stderr, "try %s --help\n", words[0]);
            exit(EXIT_FAILURE);
        }
    }
    if (optind < count)
        fail("%s: what is that? See --help", words[optind]);
    for (int i = 0; i < COUNT; i++) {
        if (!is_pointer(i) && parameters[i].kind != INTERNAL && !given[i])
            fail("scalar %d (%s) has no value: --arg %d=VAL", i, parameters[i].type, i);
        if (files[i].in && files[i].fill)
            fail("array %d has both --in and --fill", i);
    }
}
