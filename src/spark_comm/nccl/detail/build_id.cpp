// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/nccl/detail/build_id.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <fmt/core.h>
#include <fstream>
#include <ios>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spark_comm::nccl::detail {
namespace {

// A damaged header must not make us read the whole file; real ones are far below both.
constexpr std::size_t most_program_headers = 4096;
constexpr std::size_t longest_note_segment = std::size_t{1} << 20U;

using bytes = std::vector<unsigned char>;

std::optional<bytes> read_at(std::ifstream& file, std::uint64_t offset, std::size_t count) {
  if (offset > static_cast<std::uint64_t>(std::numeric_limits<std::streamoff>::max())) {
    return std::nullopt;
  }
  bytes data(count);
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(count));
  if (!file || file.gcount() != static_cast<std::streamsize>(count)) {
    return std::nullopt;
  }
  return data;
}

// Copies a struct out of bytes that need not be aligned for it.
template <typename T>
std::optional<T> copy_out(std::span<const unsigned char> from, std::size_t offset) {
  if (offset > from.size() || from.size() - offset < sizeof(T)) {
    return std::nullopt;
  }
  T value;
  std::memcpy(&value, from.data() + offset, sizeof(T));
  return value;
}

bool is_ours(const Elf64_Ehdr& header) noexcept {
  constexpr unsigned char native_order =
      std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == native_order &&
         header.e_phentsize == sizeof(Elf64_Phdr) && header.e_phnum <= most_program_headers;
}

std::string as_hex(std::span<const unsigned char> data) {
  std::string text;
  text.reserve(2 * data.size());
  for (const unsigned char byte : data) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

// Walks the notes of one segment: header, name, descriptor, each padded to the alignment.
std::string build_id_in_notes(std::span<const unsigned char> notes, std::uint64_t alignment) {
  const std::uint64_t padding = alignment == 8 ? 7 : 3;
  const auto padded = [padding](std::uint64_t count) { return (count + padding) & ~padding; };
  std::uint64_t at = 0;
  while (const auto header = copy_out<Elf64_Nhdr>(notes, at)) {
    // Both sizes are 32 bit and `at` lies inside the segment, so none of the sums wraps.
    const std::uint64_t name_at = at + sizeof(Elf64_Nhdr);
    const std::uint64_t descriptor_at = padded(name_at + header->n_namesz);
    const std::uint64_t end = descriptor_at + header->n_descsz;
    if (end > notes.size()) {
      return {};
    }
    const bool is_gnu =
        header->n_namesz == sizeof(ELF_NOTE_GNU) &&
        std::memcmp(notes.data() + name_at, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0;
    if (is_gnu && header->n_type == NT_GNU_BUILD_ID) {
      return as_hex(notes.subspan(descriptor_at, header->n_descsz));
    }
    at = padded(end);
  }
  return {};
}

}  // namespace

std::string build_id_of_file(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  const auto head = read_at(file, 0, sizeof(Elf64_Ehdr));
  if (!head) {
    return {};
  }
  const auto header = copy_out<Elf64_Ehdr>(*head, 0);
  if (!header || !is_ours(*header)) {
    return {};
  }
  const auto table = read_at(file, header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr));
  if (!table) {
    return {};
  }
  for (std::size_t i = 0; i < header->e_phnum; ++i) {
    const auto segment = copy_out<Elf64_Phdr>(*table, i * sizeof(Elf64_Phdr));
    if (!segment || segment->p_type != PT_NOTE || segment->p_filesz > longest_note_segment) {
      continue;
    }
    const auto notes = read_at(file, segment->p_offset, segment->p_filesz);
    std::string id = notes ? build_id_in_notes(*notes, segment->p_align) : std::string{};
    if (!id.empty()) {
      return id;
    }
  }
  return {};
}

}  // namespace spark_comm::nccl::detail
