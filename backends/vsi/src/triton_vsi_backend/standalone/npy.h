// Arrays in .npy files: NumPy's documented format (numpy.lib.format), versions 1.0 to 3.0, read strictly, and written
// back with the header that they came with.

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

[[noreturn]] void fail(const std::filesystem::path &file, const std::string &what) {
    throw Failure(file.string() + ": " + what);
}

struct Array {
    std::string preamble; // all that stands before the data
    std::string descr;    // the dtype in NumPy's short form, such as <f4
    bool fortran_order = false;
    std::vector<std::size_t> shape;
    std::vector<char> data; // in the file's order
};

// The header is a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderReader {
  public:
    HeaderReader(const std::filesystem::path &file, std::string_view text) : file_(file), rest_(text) {}

    void read(Array &array) {
        bool has_descr = false, has_order = false, has_shape = false;
        expect('{');
        while (!accept('}')) {
            std::string key = read_string("a key");
            expect(':');
            bool twice = false;
            if (key == "descr") {
                twice = std::exchange(has_descr, true);
                array.descr = read_descr();
            } else if (key == "fortran_order") {
                twice = std::exchange(has_order, true);
                array.fortran_order = read_bool();
            } else if (key == "shape") {
                twice = std::exchange(has_shape, true);
                array.shape = read_shape();
            } else {
                invalid("it has a key '" + key + "', which the format does not");
            }
            if (twice) invalid("it has the key '" + key + "' twice");
            if (!accept(',')) {
                expect('}');
                break;
            }
        }
        if (!has_descr) invalid("it has no 'descr'");
        if (!has_order) invalid("it has no 'fortran_order'");
        if (!has_shape) invalid("it has no 'shape'");
        skip_blanks();
        if (!rest_.empty()) invalid("something follows its closing brace");
    }

  private:
    [[noreturn]] void invalid(const std::string &what) { fail(file_, "the header is not NumPy's: " + what); }

    void skip_blanks() {
        while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\n')) rest_.remove_prefix(1);
    }

    bool accept(char wanted) {
        skip_blanks();
        if (rest_.empty() || rest_[0] != wanted) return false;
        rest_.remove_prefix(1);
        return true;
    }

    void expect(char wanted) {
        if (!accept(wanted)) invalid(std::string("there should be a ") + wanted + " at \"" + excerpt() + "\"");
    }

    bool accept_word(std::string_view word) {
        skip_blanks();
        if (rest_.substr(0, word.size()) != word) return false;
        rest_.remove_prefix(word.size());
        return true;
    }

    std::string excerpt() const { return std::string(rest_.substr(0, 20)); }

    std::string read_string(const char *what) {
        skip_blanks();
        char quote = rest_.empty() ? ' ' : rest_[0];
        std::size_t end = rest_.find(quote, 1);
        if ((quote != '\'' && quote != '"') || end == rest_.npos)
            invalid(std::string("there should be ") + what + " in quotes at \"" + excerpt() + "\"");
        std::string text(rest_.substr(1, end - 1));
        rest_.remove_prefix(end + 1);
        return text;
    }

    std::string read_descr() {
        skip_blanks();
        if (!rest_.empty() && (rest_[0] == '[' || rest_[0] == '('))
            fail(file_, "holds a structured array; save one field of it: np.save(file, array['field'])");
        return read_string("a dtype");
    }

    bool read_bool() {
        if (accept_word("True")) return true;
        if (accept_word("False")) return false;
        invalid("'fortran_order' is neither True nor False at \"" + excerpt() + "\"");
    }

    std::vector<std::size_t> read_shape() {
        std::vector<std::size_t> shape;
        if (!accept('(')) invalid("'shape' is not a tuple at \"" + excerpt() + "\"");
        bool comma = true;
        while (!accept(')')) {
            if (!comma) invalid("the numbers of 'shape' are not separated at \"" + excerpt() + "\"");
            shape.push_back(read_extent());
            comma = accept(',');
        }
        // (3) is a number to Python, and (3,) is a tuple.
        if (shape.size() == 1 && !comma) invalid("'shape' is not a tuple, it lacks a comma");
        return shape;
    }

    std::size_t read_extent() {
        skip_blanks();
        std::size_t extent = 0;
        auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
        if (error == std::errc::result_out_of_range)
            invalid("a number of 'shape' is too large at \"" + excerpt() + "\"");
        if (error != std::errc()) invalid("'shape' has an entry that is not a number of elements at \"" + excerpt() + "\"");
        rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
        return extent;
    }

    const std::filesystem::path &file_;
    std::string_view rest_;
};

// Reads a file whose elements have one of the dtypes `descrs`, each of `bytes` bytes; `advice` says how to make one.
Array read_npy(const std::filesystem::path &file, const std::vector<std::string_view> &descrs, std::size_t bytes,
               const std::string &advice) {
    std::error_code none;
    if (!std::filesystem::exists(file, none)) fail(file, "there is no such file; " + advice);
    if (!std::filesystem::is_regular_file(file, none)) fail(file, "is not a file; " + advice);
    std::size_t size = std::filesystem::file_size(file);
    std::ifstream stream(file, std::ios::binary);
    if (!stream) fail(file, std::string("cannot be opened: ") + std::strerror(errno));

    Array array;
    // The next `count` bytes of what stands before the data.
    auto take = [&](std::size_t count, const char *what) {
        std::size_t before = array.preamble.size();
        if (count > size - before) fail(file, std::string("is cut off within ") + what);
        array.preamble.resize(before + count);
        if (!stream.read(array.preamble.data() + before, static_cast<std::streamsize>(count)))
            fail(file, "cannot be read");
        return std::string_view(array.preamble).substr(before);
    };
    if (size == 0) fail(file, "is empty; " + advice);
    constexpr std::string_view MAGIC = "\x93NUMPY";
    std::string_view magic = take(std::min(size, MAGIC.size()), "its first bytes");
    if (magic.substr(0, 4) == std::string_view("PK\3\4")) fail(file, "is an .npz archive; " + advice);
    if (magic != MAGIC.substr(0, magic.size())) fail(file, "is not a .npy file; " + advice);
    if (magic.size() < MAGIC.size()) fail(file, "is cut off within its first bytes");
    std::string_view version = take(2, "its version");
    unsigned major = static_cast<unsigned char>(version[0]), minor = static_cast<unsigned char>(version[1]);
    if (major < 1 || major > 3 || minor != 0)
        fail(file, "has version " + std::to_string(major) + "." + std::to_string(minor) +
                       " of the format; 1.0, 2.0 and 3.0 are known");
    std::size_t length = 0;
    std::string_view digits = take(major == 1 ? 2 : 4, "the length of its header");
    for (std::size_t i = digits.size(); i-- > 0;) length = length << 8 | static_cast<unsigned char>(digits[i]);
    HeaderReader(file, take(length, "its header")).read(array);

    if (std::find(descrs.begin(), descrs.end(), array.descr) == descrs.end()) {
        const char *why = array.descr[0] == '>'  ? " (big-endian)"
                          : array.descr == "|O" ? " (pickled Python objects)"
                                                : "";
        fail(file, "holds '" + array.descr + "'" + why + " where '" + std::string(descrs[0]) + "' is taken; " + advice);
    }
    std::size_t expected = bytes, rest = size - array.preamble.size();
    bool empty = std::find(array.shape.begin(), array.shape.end(), 0U) != array.shape.end();
    for (std::size_t extent : array.shape) {
        if (!empty && expected > std::numeric_limits<std::ptrdiff_t>::max() / extent)
            fail(file, "the header is not NumPy's: 'shape' has more elements than a memory");
        expected = empty ? 0 : expected * extent;
    }
    if (rest != expected)
        fail(file, std::string(rest < expected ? "is cut off" : "has something behind its data") +
                       ": its shape means " + std::to_string(expected) + " bytes of data, and there are " +
                       std::to_string(rest));
    array.data.resize(rest);
    if (rest != 0 && !stream.read(array.data.data(), static_cast<std::streamsize>(rest))) fail(file, "cannot be read");
    if (array.descr == "|b1" && std::any_of(array.data.begin(), array.data.end(), [](char bit) { return bit & ~1; }))
        fail(file, "holds bytes that are neither False (0) nor True (1)");
    return array;
}

// Writes an array as it was read but for its data; the file is there whole or not at all.
void write_npy(const std::filesystem::path &file, const Array &array) {
    std::filesystem::path part = file;
    part += ".part";
    std::ofstream stream(part, std::ios::binary | std::ios::trunc);
    stream.write(array.preamble.data(), static_cast<std::streamsize>(array.preamble.size()));
    stream.write(array.data.data(), static_cast<std::streamsize>(array.data.size()));
    stream.close();
    std::error_code error;
    if (!stream) {
        int reason = errno;
        std::filesystem::remove(part, error);
        fail(file, std::string("cannot be written: ") + std::strerror(reason));
    }
    std::filesystem::rename(part, file, error);
    if (error) fail(file, "cannot be written: " + error.message());
}
