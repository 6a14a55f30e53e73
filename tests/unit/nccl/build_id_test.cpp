// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/nccl/detail/build_id.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace spark_comm::nccl::detail {
namespace {

using bytes = std::vector<unsigned char>;

template <typename T>
void append(bytes& to, const T& value) {
  const auto* const first = reinterpret_cast<const unsigned char*>(&value);
  to.insert(to.end(), first, first + sizeof(T));
}

void append_note(bytes& to,
                 const std::string& name,
                 Elf64_Word type,
                 const bytes& descriptor,
                 std::size_t alignment = 4) {
  append(to,
         Elf64_Nhdr{.n_namesz = static_cast<Elf64_Word>(name.size() + 1),
                    .n_descsz = static_cast<Elf64_Word>(descriptor.size()),
                    .n_type = type});
  const auto pad = [&] {
    while (to.size() % alignment != 0) {
      to.push_back(0);
    }
  };
  to.insert(to.end(), name.begin(), name.end());
  to.push_back(0);
  pad();
  to.insert(to.end(), descriptor.begin(), descriptor.end());
  pad();
}

// A file of headers and one note segment; the fields are open for a test to damage.
struct elf_file {
  Elf64_Ehdr header{};
  Elf64_Phdr segment{};
  bytes notes;
  std::size_t gap = 0;  // bytes before the notes, to make them unaligned

  explicit elf_file(bytes with_notes, Elf64_Xword alignment = 4) : notes(std::move(with_notes)) {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] =
        std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
    header.e_phoff = sizeof(Elf64_Ehdr);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 1;
    segment.p_type = PT_NOTE;
    segment.p_align = alignment;
    segment.p_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
    segment.p_filesz = notes.size();
  }

  [[nodiscard]] std::string build_id() const {
    bytes file;
    append(file, header);
    append(file, segment);
    file.insert(file.end(), gap, 0xee);
    file.insert(file.end(), notes.begin(), notes.end());
    const auto path = std::filesystem::path{::testing::TempDir()} /
                      ("spark_comm_build_id_" + std::to_string(::getpid()));
    std::ofstream{path, std::ios::binary}.write(reinterpret_cast<const char*>(file.data()),
                                                static_cast<std::streamsize>(file.size()));
    std::string id = build_id_of_file(path.string());
    std::filesystem::remove(path);
    return id;
  }
};

bytes gnu_note(const bytes& descriptor = {0x01, 0xab, 0xff}) {
  bytes notes;
  append_note(notes, "GNU", NT_GNU_BUILD_ID, descriptor);
  return notes;
}

TEST(build_id, is_the_descriptor_in_hex) {
  EXPECT_EQ(elf_file{gnu_note()}.build_id(), "01abff");
}

TEST(build_id, found_behind_other_notes) {
  bytes notes;
  append_note(notes, "GNU", NT_GNU_ABI_TAG, bytes(16, 1));
  append_note(notes, "stapsdt", NT_GNU_BUILD_ID, bytes(5, 2));
  append_note(notes, "GNV", NT_GNU_BUILD_ID, bytes(4, 3));
  append_note(notes, "GNU", NT_GNU_BUILD_ID, {0x42});
  EXPECT_EQ(elf_file{notes}.build_id(), "42");
}

TEST(build_id, found_in_a_segment_of_eight_byte_alignment) {
  bytes notes;
  append_note(notes, "GNU", NT_GNU_PROPERTY_TYPE_0, bytes(4, 1), 8);
  append_note(notes, "GNU", NT_GNU_BUILD_ID, {0x42}, 8);
  EXPECT_EQ((elf_file{notes, 8}.build_id()), "42");
}

TEST(build_id, notes_need_not_be_aligned_in_the_file) {
  for (std::size_t gap = 1; gap < 8; ++gap) {
    elf_file file{gnu_note()};
    file.gap = gap;
    file.segment.p_offset += gap;
    EXPECT_EQ(file.build_id(), "01abff") << gap;
  }
}

TEST(build_id, file_without_one_has_none) {
  bytes notes;
  append_note(notes, "GNU", NT_GNU_ABI_TAG, bytes(16, 1));
  EXPECT_EQ(elf_file{notes}.build_id(), "");
  EXPECT_EQ(elf_file{{}}.build_id(), "");
  elf_file other_segment{gnu_note()};
  other_segment.segment.p_type = PT_LOAD;
  EXPECT_EQ(other_segment.build_id(), "");
}

TEST(build_id, what_is_no_64_bit_elf_of_this_machine_has_none) {
  EXPECT_EQ(build_id_of_file("/no/such/file"), "");
  EXPECT_EQ(build_id_of_file(::testing::TempDir()), "") << "a directory";
  elf_file magic{gnu_note()};
  magic.header.e_ident[0] = 'F';
  EXPECT_EQ(magic.build_id(), "");
  elf_file narrow{gnu_note()};
  narrow.header.e_ident[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(narrow.build_id(), "");
  elf_file swapped{gnu_note()};
  swapped.header.e_ident[EI_DATA] =
      std::endian::native == std::endian::little ? ELFDATA2MSB : ELFDATA2LSB;
  EXPECT_EQ(swapped.build_id(), "");
  elf_file entries{gnu_note()};
  entries.header.e_phentsize = 8;
  EXPECT_EQ(entries.build_id(), "");
}

TEST(build_id, damaged_numbers_lead_nowhere) {
  const auto damaged = [](const auto& damage) {
    elf_file file{gnu_note()};
    damage(file);
    return file.build_id();
  };
  constexpr Elf64_Off far = ~Elf64_Off{0};
  EXPECT_EQ(damaged([](elf_file& f) { f.header.e_phoff = far; }), "");
  EXPECT_EQ(damaged([](elf_file& f) { f.header.e_phoff = 1U << 20U; }), "");
  EXPECT_EQ(damaged([](elf_file& f) { f.header.e_phnum = 0xffff; }), "");
  EXPECT_EQ(damaged([](elf_file& f) { f.header.e_phnum = 100; }), "");
  EXPECT_EQ(damaged([](elf_file& f) { f.segment.p_offset = far; }), "");
  EXPECT_EQ(damaged([](elf_file& f) { f.segment.p_filesz = far; }), "");
  EXPECT_EQ(damaged([](elf_file& f) { f.segment.p_filesz += 1; }), "");
  EXPECT_EQ(damaged([](elf_file& f) { f.segment.p_filesz = sizeof(Elf64_Nhdr) + 3; }), "");
  EXPECT_EQ(damaged([](elf_file& f) { f.segment.p_filesz = sizeof(Elf64_Nhdr) - 1; }), "");
}

TEST(build_id, damaged_notes_lead_nowhere) {
  const auto damaged = [](Elf64_Word Elf64_Nhdr::* field, Elf64_Word value) {
    bytes notes = gnu_note();
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data(), sizeof header);
    header.*field = value;
    std::memcpy(notes.data(), &header, sizeof header);
    return elf_file{notes}.build_id();
  };
  EXPECT_EQ(damaged(&Elf64_Nhdr::n_descsz, 0xffffffff), "");
  EXPECT_EQ(damaged(&Elf64_Nhdr::n_descsz, 5), "");
  EXPECT_EQ(damaged(&Elf64_Nhdr::n_namesz, 0xffffffff), "");
  EXPECT_EQ(damaged(&Elf64_Nhdr::n_namesz, 3), "");
  EXPECT_EQ(damaged(&Elf64_Nhdr::n_type, 4), "");
}

}  // namespace
}  // namespace spark_comm::nccl::detail
