// printf for DPU programs: reads x32's va_list out of the program's memory and formats with the C library's own printf.
#include "log.h"

#include <cstdio>
#include <cstring>

#include "rules.h"

using shared::Rule;

void Log::clear() {
    control_.log_bytes = 0;
    control_.log_dropped = 0;
}

void Log::add(const char *text, std::size_t bytes) {
    std::size_t room = shared::LOG_BYTES - control_.log_bytes;
    std::size_t fits = bytes < room ? bytes : room;
    std::memcpy(bytes_ + control_.log_bytes, text, fits);
    control_.log_bytes += static_cast<std::uint32_t>(fits);
    control_.log_dropped += static_cast<std::uint32_t>(bytes - fits);
}

void Log::report(const std::string &text) {
    add((text + "\n").data(), text.size() + 1);
    if (text.size() < shared::REPORT_BYTES - control_.report_bytes) {
        std::memcpy(control_.reports + control_.report_bytes, text.c_str(), text.size() + 1);
        control_.report_bytes += static_cast<std::uint32_t>(text.size() + 1);
    } else {
        control_.reports_dropped++;
    }
}

std::string string_at(const Memory &memory, std::uint32_t tasklet, std::uint32_t address, std::size_t limit) {
    std::string text;
    for (; text.size() < limit; address++) {
        if (!memory.usable(address, 1))
            throw Broken{Rule::print, tasklet, address, 1,
                         format("a string reaches 0x%08x, which is not in WRAM", address)};
        char byte = *Memory::at<char>(address);
        if (byte == 0) break;
        text += byte;
    }
    return text;
}

namespace {

// The arguments of a variadic call in the x32 ABI: integers in a save area of 6 slots of 8 bytes, floats behind it in 8
// slots of 16, the rest on the stack in slots of 8.
class Arguments {
  public:
    Arguments(const Memory &memory, std::uint32_t tasklet, std::uint32_t list)
        : memory_(memory), tasklet_(tasklet), words_(&word(list, 16)) {}

    std::uint64_t integer() {
        if (words_[GENERAL] + 8 > 48) return overflow();
        std::uint64_t value = slot(words_[SAVED] + words_[GENERAL]);
        words_[GENERAL] += 8;
        return value;
    }

    double floating() {
        std::uint64_t bits;
        if (words_[FLOATING] + 16 > 176) {
            bits = overflow();
        } else {
            bits = slot(words_[SAVED] + words_[FLOATING]);
            words_[FLOATING] += 16;
        }
        double value;
        std::memcpy(&value, &bits, 8);
        return value;
    }

  private:
    enum { GENERAL, FLOATING, OVERFLOW_AREA, SAVED };

    std::uint32_t &word(std::uint32_t address, std::uint32_t bytes) const {
        if (!memory_.usable(address, bytes))
            throw Broken{Rule::print, tasklet_, address, bytes,
                         format("printf's arguments at 0x%08x are not in WRAM", address)};
        return *Memory::at<std::uint32_t>(address);
    }
    std::uint64_t slot(std::uint32_t address) const {
        std::uint64_t value;
        std::memcpy(&value, &word(address, 8), 8);
        return value;
    }
    std::uint64_t overflow() {
        std::uint64_t value = slot(words_[OVERFLOW_AREA]);
        words_[OVERFLOW_AREA] += 8;
        return value;
    }

    const Memory &memory_;
    std::uint32_t tasklet_;
    std::uint32_t *words_;
};

// One conversion of a format: % flags width .precision length letter.
struct Conversion {
    std::string flags;
    int width = -1, precision = -1;
    int bits = 32; // of an integer: 8, 16, 32, 64
    char letter = 0;

    std::string pattern(const char *length) const {
        std::string text = "%" + flags;
        if (width >= 0) text += std::to_string(width);
        if (precision >= 0) text += "." + std::to_string(precision);
        return text + length + letter;
    }
};

constexpr int WIDEST = 4096; // a width or precision beyond this is a mistake

Conversion parse(const std::string &text, std::size_t &at, Arguments &arguments) {
    Conversion conversion;
    auto number = [&](bool &minus) {
        minus = false;
        int value = 0;
        if (at < text.size() && text[at] == '*') {
            at++;
            value = static_cast<int>(static_cast<std::uint32_t>(arguments.integer()));
            minus = value < 0;
            value = minus ? -value : value;
        } else {
            while (at < text.size() && text[at] >= '0' && text[at] <= '9' && value <= WIDEST)
                value = value * 10 + (text[at++] - '0');
        }
        return value < 0 || value > WIDEST ? WIDEST : value;
    };
    while (at < text.size() && std::strchr("-+ #0", text[at])) conversion.flags += text[at++];
    bool minus;
    if (at < text.size() && (text[at] == '*' || (text[at] >= '1' && text[at] <= '9'))) {
        conversion.width = number(minus);
        if (minus) conversion.flags += '-';
    }
    if (at < text.size() && text[at] == '.') {
        at++;
        conversion.precision = number(minus);
        if (minus) conversion.precision = -1;
    }
    for (; at < text.size() && std::strchr("hlzjt", text[at]); at++) {
        bool again = text[at - 1] == text[at];
        if (text[at] == 'h') conversion.bits = again ? 8 : 16;
        if (text[at] == 'l' || text[at] == 'j') conversion.bits = 64; // size_t and pointers have 32 bits
    }
    if (at < text.size()) conversion.letter = text[at++];
    return conversion;
}

} // namespace

std::string print(const Memory &memory, std::uint32_t tasklet, std::uint32_t format_address, std::uint32_t list) {
    std::string text = string_at(memory, tasklet, format_address), out;
    Arguments arguments(memory, tasklet, list);
    for (std::size_t at = 0; at < text.size();) {
        if (text[at] != '%') {
            out += text[at++];
            continue;
        }
        at++;
        Conversion conversion = parse(text, at, arguments);
        std::uint64_t mask = conversion.bits == 64 ? ~0ull : (1ull << conversion.bits) - 1;
        switch (conversion.letter) {
        case '%': out += '%'; break;
        case 'd':
        case 'i': {
            int unused = 64 - conversion.bits;
            auto value = static_cast<std::int64_t>(arguments.integer() << unused) >> unused;
            out += format(conversion.pattern("ll").c_str(), static_cast<long long>(value));
            break;
        }
        case 'u':
        case 'x':
        case 'X':
        case 'o':
            out +=
                format(conversion.pattern("ll").c_str(), static_cast<unsigned long long>(arguments.integer() & mask));
            break;
        case 'p': out += format("0x%x", static_cast<unsigned>(arguments.integer())); break;
        case 'c': out += format(conversion.pattern("").c_str(), static_cast<int>(arguments.integer() & 0xff)); break;
        case 's': {
            auto address = static_cast<std::uint32_t>(arguments.integer());
            std::size_t limit = conversion.precision >= 0 ? static_cast<std::size_t>(conversion.precision) : 0x10000;
            std::string string = string_at(memory, tasklet, address, limit);
            out += format(conversion.pattern("").c_str(), string.c_str());
            break;
        }
        case 'f':
        case 'F':
        case 'e':
        case 'E':
        case 'g':
        case 'G':
        case 'a':
        case 'A': out += format(conversion.pattern("").c_str(), arguments.floating()); break;
        default:
            throw Broken{Rule::print, tasklet, format_address, 0,
                         format("printf(\"%s\"): no such conversion: '%c'", text.c_str(), conversion.letter)};
        }
    }
    return out;
}
