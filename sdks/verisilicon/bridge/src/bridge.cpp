// The reference bridge: checks matrix products, and writes the words of commands as zen_tc_bridge.h lists them.
#include "zen_tc_bridge.h"

#include <cstddef>
#include <string_view>

namespace {

constexpr std::size_t kWords = ZEN_TC_COMMAND_BYTES / 4;

// Where fields start, in words.
enum Word : std::size_t {
  kMagic = 0,
  kOpcode = 1,
  kIndex = 2,
  kGrid = 4,
  kProgram = 8,
  kM = 12,
  kN = 13,
  kK = 14,
  kOperandType = 16,
  kResultType = 17,
  kAStrides = 20,
  kBStrides = 22,
  kCStrides = 24,
  kChecksum = kWords - 1,
};

struct Field {
  std::string_view name;
  Word word;
};

constexpr Field kFields[] = {
    {"magic", kMagic},        {"opcode", kOpcode},
    {"index", kIndex},        {"grid", kGrid},
    {"program", kProgram},    {"m", kM},
    {"n", kN},                {"k", kK},
    {"operand_type", kOperandType}, {"result_type", kResultType},
    {"a_strides", kAStrides}, {"b_strides", kBStrides},
    {"c_strides", kCStrides}, {"checksum", kChecksum},
};

// Byte by byte: a command may lie anywhere, and its words are little-endian wherever this runs.
uint32_t read(const uint8_t *command, std::size_t word) {
  uint32_t value = 0;
  for (std::size_t byte = 0; byte < 4; ++byte) {
    value |= uint32_t{command[4 * word + byte]} << (8 * byte);
  }
  return value;
}

void write(uint8_t *command, std::size_t word, uint32_t value) {
  for (std::size_t byte = 0; byte < 4; ++byte) {
    command[4 * word + byte] = static_cast<uint8_t>(value >> (8 * byte));
  }
}

bool good_extent(uint32_t extent) { return extent >= 1 && extent <= ZEN_TC_MAX_EXTENT; }

// The offset of the last element. With extents of at most 2^16 it fits: 2 * 2^16 * 2^32 < 2^64.
uint64_t last(uint32_t rows, uint32_t columns, const uint32_t strides[2]) {
  return uint64_t{rows - 1} * strides[0] + uint64_t{columns - 1} * strides[1];
}

bool reachable(uint32_t rows, uint32_t columns, const uint32_t strides[2]) {
  return last(rows, columns, strides) <= UINT32_MAX;
}

// Whether neither two lines (rows or columns) of a matrix nor two elements of one line share memory.
bool separate(uint32_t lines, uint32_t line_stride, uint32_t elements, uint32_t stride) {
  return (elements == 1 || stride >= 1) && (lines == 1 || line_stride > uint64_t{elements - 1} * stride);
}

}  // namespace

extern "C" uint32_t zen_tc_version(void) { return ZEN_TC_VERSION; }

extern "C" const char *zen_tc_refuses(const zen_tc_matmul *matmul) {
  const auto [m, n, k, operand_type, result_type, a_strides, b_strides, c_strides] = *matmul;
  if (!good_extent(m) || !good_extent(n) || !good_extent(k)) {
    return "m, n and k must be 1 to 65536";
  }
  if (operand_type != ZEN_TC_F32) {
    return "operands must be f32 in memory";
  }
  if (result_type != ZEN_TC_F32) {
    return "results must be f32";
  }
  if (!reachable(m, k, a_strides) || !reachable(k, n, b_strides) || !reachable(m, n, c_strides)) {
    return "an element is 2^32 elements or more from the first one of its matrix";
  }
  if (!separate(m, c_strides[0], n, c_strides[1]) && !separate(n, c_strides[1], m, c_strides[0])) {
    return "elements of the result overlap";
  }
  return nullptr;
}

extern "C" int zen_tc_encode(const zen_tc_matmul *matmul, uint32_t index, uint8_t command[ZEN_TC_COMMAND_BYTES]) {
  if (zen_tc_refuses(matmul) != nullptr) {
    return -1;
  }
  for (std::size_t word = 0; word < kWords; ++word) {
    write(command, word, 0);
  }
  write(command, kMagic, ZEN_TC_MAGIC);
  write(command, kOpcode, ZEN_TC_MATMUL);
  write(command, kIndex, index);
  write(command, kM, matmul->m);
  write(command, kN, matmul->n);
  write(command, kK, matmul->k);
  write(command, kOperandType, matmul->operand_type);
  write(command, kResultType, matmul->result_type);
  for (std::size_t axis = 0; axis < 2; ++axis) {
    write(command, kAStrides + axis, matmul->a_strides[axis]);
    write(command, kBStrides + axis, matmul->b_strides[axis]);
    write(command, kCStrides + axis, matmul->c_strides[axis]);
  }
  return 0;
}

extern "C" int32_t zen_tc_field(const char *name) {
  for (const Field &field : kFields) {
    if (field.name == name) {
      return static_cast<int32_t>(4 * field.word);
    }
  }
  return -1;
}

extern "C" int zen_tc_place(uint8_t command[ZEN_TC_COMMAND_BYTES], const uint32_t grid[3], const uint32_t program[3]) {
  if (read(command, kMagic) != ZEN_TC_MAGIC) {
    return -1;
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (program[axis] >= grid[axis]) {
      return -1;
    }
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    write(command, kGrid + axis, grid[axis]);
    write(command, kProgram + axis, program[axis]);
  }
  uint32_t sum = 0;
  for (std::size_t word = 0; word < kChecksum; ++word) {
    sum += read(command, word);
  }
  write(command, kChecksum, sum);
  return 0;
}
