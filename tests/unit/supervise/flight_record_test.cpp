// SPDX-License-Identifier: AGPL-3.0-only
#include "unit/supervise/temporary_directory.hpp"

#include <spark_comm/supervise/flight_reader.hpp>
#include <spark_comm/supervise/flight_record.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr time_point start{1000s};

operation_record make_record(std::uint64_t sequence) {
  operation_record record{.sequence = sequence,
                          .ordinal = sequence + 1,
                          .count_elements = sequence * 3,
                          .stream = 0xabcdef,
                          .communicator = 77,
                          .generation = 4,
                          .root_or_peer = -1,
                          .kind = operation_kind::all_gather,
                          .dtype = data_type::bytes,
                          .op = reduce_op::min,
                          .path = path_kind::two_shot};
  record.set(operation_flag::captured);
  return record;
}

std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  const auto view = std::as_bytes(std::span{text});
  return {view.begin(), view.end()};
}

TEST(flight_record, gives_back_what_was_written) {
  const temporary_directory folder;
  auto record = flight_record::create(
      {.name = "tp", .rank = 1, .world_size = 2, .communicator = 77, .generation = 4},
      folder.path(),
      16);
  EXPECT_EQ(record.submitted(make_record(1), start, 99), 0U);
  EXPECT_EQ(record.submitted(make_record(2), start + 5us), 1U);
  EXPECT_EQ(record.submitted(make_record(3), start + 6us), 2U);
  record.started(0, start + 10us);
  record.completed(0, start + 20us);
  record.started(1, start + 21us);
  record.failed(1, start + 30us, errc::peer_lost, native_domain::nccl, -6);

  const flight_log log = read_flight_record(record.path());
  EXPECT_THAT(log.problems, IsEmpty());
  EXPECT_TRUE(log.is_identified);
  EXPECT_EQ(log.who.name, "tp");
  EXPECT_EQ(log.who.rank, 1);
  EXPECT_EQ(log.who.world_size, 2);
  EXPECT_EQ(log.who.generation, 4U);
  EXPECT_EQ(log.process, static_cast<std::uint64_t>(::getpid()));
  EXPECT_FALSE(log.end.has_value());
  EXPECT_GT(log.wall_base_ns, 1'600'000'000'000'000'000);
  ASSERT_EQ(log.entries.size(), 3U);
  EXPECT_EQ(log.entries[0].record, make_record(1));
  EXPECT_EQ(log.entries[0].signature, 99U);
  EXPECT_EQ(log.entries[0].stage, flight_stage::completed);
  EXPECT_EQ(*log.entries[0].started_ns - log.entries[0].submitted_ns, 10'000);
  EXPECT_EQ(*log.entries[0].finished_ns - log.entries[0].submitted_ns, 20'000);
  EXPECT_EQ(log.entries[1].stage, flight_stage::failed);
  EXPECT_EQ(log.entries[1].code, errc::peer_lost);
  EXPECT_EQ(log.entries[1].domain, native_domain::nccl);
  EXPECT_EQ(log.entries[1].native_number, -6);
  EXPECT_EQ(log.entries[2].stage, flight_stage::submitted);
  EXPECT_EQ(log.entries[2].submitted_ns, 1'000'000'006'000);
}

TEST(flight_record, all_stages_have_names) {
  for (const flight_stage stage : all_flight_stages) {
    EXPECT_NE(name_of(stage), "unknown");
  }
  EXPECT_EQ(name_of(static_cast<flight_stage>(9)), "unknown");
}

TEST(flight_record, keeps_the_last_operations) {
  const temporary_directory folder;
  auto record = flight_record::create({}, folder.path(), 5);
  EXPECT_EQ(record.capacity(), 8U);
  for (std::uint64_t sequence = 1; sequence <= 20; ++sequence) {
    record.completed(record.submitted(make_record(sequence), start), start + 1us);
  }
  const flight_log log = read_flight_record(record.path());
  EXPECT_THAT(log.problems, IsEmpty());
  EXPECT_EQ(log.written, 20U);
  ASSERT_EQ(log.entries.size(), 8U);
  EXPECT_EQ(log.entries.front().record.sequence, 13U);
  EXPECT_EQ(log.entries.back().record.sequence, 20U);
  EXPECT_EQ(log.entries.back().stage, flight_stage::completed);
}

TEST(flight_record, what_comes_too_late_does_not_touch_the_next_lap) {
  auto record = flight_record::create({}, "", 4);
  for (std::uint64_t sequence = 1; sequence <= 5; ++sequence) {
    record.submitted(make_record(sequence), start);
  }
  record.completed(0, start + 1us);
  record.started(0, start + 1us);
  EXPECT_EQ(record.find(4)->stage, flight_stage::submitted);
  EXPECT_FALSE(record.find(0).has_value());
}

TEST(flight_record, a_time_before_the_submission_counts_as_the_submission) {
  auto record = flight_record::create({}, "", 4);
  record.submitted(make_record(1), start);
  record.started(0, start - 1s);
  EXPECT_EQ(record.find(0)->started_ns, record.find(0)->submitted_ns);
}

TEST(flight_record, in_plain_memory_serves_error_texts) {
  auto record = flight_record::create({}, "");
  EXPECT_EQ(record.path(), "");
  EXPECT_THAT(record.recent(10), IsEmpty());
  for (std::uint64_t sequence = 1; sequence <= 9; ++sequence) {
    record.submitted(make_record(sequence), start);
  }
  const auto recent = record.recent(3);
  ASSERT_EQ(recent.size(), 3U);
  EXPECT_EQ(recent.front().record.sequence, 7U);
  EXPECT_EQ(record.recent(100).size(), 9U);
}

TEST(flight_record, names_its_file_after_its_owner) {
  EXPECT_EQ(flight_record::file_name({.name = "tp", .rank = 3, .generation = 2}),
            "spark_comm-tp-rank3-gen2.flight");
  EXPECT_EQ(flight_record::file_name({.name = "../a b"}), "spark_comm-___a_b-rank0-gen0.flight");
}

TEST(flight_record, says_how_the_rank_left) {
  const temporary_directory folder;
  auto record = flight_record::create({}, folder.path(), 4);
  for (const flight_end how : {flight_end::closed, flight_end::broken, flight_end::aborted}) {
    record.ended(how);
    EXPECT_EQ(read_flight_record(record.path()).end, how);
  }
}

TEST(flight_record, a_missing_folder_is_an_error_that_names_it) {
  try {
    (void)flight_record::create({}, "/nowhere/at/all");
    FAIL() << "must throw";
  } catch (const error& thrown) {
    EXPECT_EQ(thrown.kind(), errc::system_failed);
    EXPECT_EQ(thrown.native().number, ENOENT);
    EXPECT_THAT(thrown.what(), HasSubstr("/nowhere/at/all/spark_comm-world"));
  }
}

TEST(flight_record, refuses_a_capacity_out_of_bounds) {
  EXPECT_THROW((void)flight_record::create({}, "", 0), error);
  EXPECT_THROW((void)flight_record::create({}, "", (std::size_t{1} << 20U) + 1), error);
}

TEST(flight_record, want_of_space_is_an_error_at_creation_that_leaves_nothing_behind) {
  const temporary_directory folder;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 4096, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string text;
  try {
    (void)flight_record::create({}, folder.path(), 64);
  } catch (const error& thrown) {
    text = thrown.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_THAT(text, HasSubstr("cannot reserve 12288 bytes"));
  EXPECT_THAT(text, HasSubstr("bytes are free there"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(flight_record, a_new_record_leaves_the_mapped_old_one_alone) {
  const temporary_directory folder;
  auto old_record = flight_record::create({}, folder.path(), 4);
  auto new_record = flight_record::create({}, folder.path(), 8);
  old_record.submitted(make_record(1), start);
  new_record.submitted(make_record(2), start);
  EXPECT_EQ(old_record.find(0)->record.sequence, 1U);
  EXPECT_EQ(read_flight_record(new_record.path()).entries.at(0).record.sequence, 2U);
}

TEST(flight_record, survives_the_kill_of_its_process) {
  const temporary_directory folder;
  for (int round = 0; round < 5; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto record = flight_record::create({}, folder.path(), 64);
      for (std::uint64_t sequence = 1;; ++sequence) {
        record.submitted(make_record(sequence), start);
      }
    }
    const std::string path = folder.path() + "/" + flight_record::file_name({});
    const auto is_full = [&] {
      return std::filesystem::exists(path) && read_flight_record(path).written > 100;
    };
    for (int tries = 0; tries < 10000 && !is_full(); ++tries) {
      std::this_thread::sleep_for(1ms);
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const flight_log log = read_flight_record(path);
    EXPECT_TRUE(log.is_identified);
    EXPECT_EQ(log.process, static_cast<std::uint64_t>(child));
    EXPECT_GE(log.entries.size(), 63U);
    for (const std::string& problem : log.problems) {
      EXPECT_THAT(problem, ::testing::AnyOf(HasSubstr("while writing"), HasSubstr("missing")));
    }
    std::filesystem::remove(path);
  }
}

class damaged_flight_record : public ::testing::Test {
 protected:
  damaged_flight_record() {
    auto record = flight_record::create({.name = "tp"}, folder_.path(), 8);
    for (std::uint64_t sequence = 1; sequence <= 11; ++sequence) {
      record.submitted(make_record(sequence), start);
    }
    whole_ = bytes_of(record.path());
  }

  temporary_directory folder_;
  std::vector<std::byte> whole_;
};

TEST_F(damaged_flight_record, may_be_cut_anywhere) {
  for (std::size_t length = 0; length < whole_.size(); length += length < 4000 ? 37 : 1) {
    const flight_log log = parse_flight_record(std::span{whole_}.first(length));
    EXPECT_FALSE(log.problems.empty()) << length;
    EXPECT_LE(log.entries.size(), 8U);
  }
}

TEST_F(damaged_flight_record, loses_only_the_entry_that_is_hit) {
  for (std::size_t at = 4096; at < whole_.size(); ++at) {
    std::vector<std::byte> bytes = whole_;
    bytes[at] ^= std::byte{0x10};
    const flight_log log = parse_flight_record(bytes);
    const bool is_checked = (at - 4096) % 128 < 88;
    EXPECT_EQ(log.entries.size(), is_checked ? 7U : 8U) << at;
    EXPECT_EQ(log.problems.empty(), !is_checked) << at;
  }
}

TEST_F(damaged_flight_record, says_when_the_header_is_hit) {
  for (std::size_t at = 0; at < 272; ++at) {
    std::vector<std::byte> bytes = whole_;
    bytes[at] ^= std::byte{0x01};
    EXPECT_FALSE(parse_flight_record(bytes).problems.empty()) << at;
  }
}

TEST_F(damaged_flight_record, never_crashes_on_random_bytes) {
  std::mt19937 random{42};  // NOLINT(bugprone-random-generator-seed,cert-msc51-cpp): repeatable
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> bytes = whole_;
    const auto hits = 1 + random() % 64;
    for (std::uint32_t hit = 0; hit < hits; ++hit) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random() & 0xffU);
    }
    bytes.resize(random() % 4 == 0 ? random() % bytes.size() : bytes.size());
    const flight_log log = parse_flight_record(bytes);
    EXPECT_LE(log.entries.size(), 8U);
  }
}

TEST_F(damaged_flight_record, files_that_are_none_are_told) {
  const std::string path = folder_.path() + "/other";
  std::ofstream{path} << std::string(5000, 'x');
  EXPECT_THAT(read_flight_record(path).problems.at(0), HasSubstr("not a flight record"));
  EXPECT_THROW((void)read_flight_record(folder_.path() + "/none"), error);
  EXPECT_THROW((void)read_flight_record("/dev/zero"), error);
  whole_[8] = std::byte{9};
  EXPECT_THAT(parse_flight_record(whole_).problems.at(0), HasSubstr("layout version 9"));
}

TEST(flight_record, may_be_asked_while_it_is_written) {
  auto record = flight_record::create({}, "", 16);
  std::atomic<bool> is_over{false};
  std::atomic<std::uint64_t> written{0};
  std::thread watchdog{[&] {
    while (!is_over) {
      const std::uint64_t end = written;
      for (std::uint64_t index = end - std::min<std::uint64_t>(end, 8); index < end; ++index) {
        record.started(index, start + 1us);
        record.completed(index, start + 2us);
      }
    }
  }};
  std::thread asker{[&] {
    while (!is_over) {
      for (const flight_entry& entry : record.recent(16)) {
        EXPECT_EQ(entry.record, make_record(entry.index + 1));
      }
    }
  }};
  for (std::uint64_t sequence = 1; sequence <= 20000; ++sequence) {
    written = record.submitted(make_record(sequence), start) + 1;
  }
  is_over = true;
  watchdog.join();
  asker.join();
  EXPECT_EQ(record.recent(16).size(), 16U);
}

}  // namespace
}  // namespace spark_comm
