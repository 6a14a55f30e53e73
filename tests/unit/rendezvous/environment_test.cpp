// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/environment.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::rendezvous {
namespace {

using ::testing::HasSubstr;
using table = std::map<std::string, std::string, std::less<>>;

world place_of(const table& variables) {
  return place_from(launcher_variables::read([&](std::string_view name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional{found->second};
  }));
}

TEST(environment, reads_every_launcher) {
  struct row {
    table variables;
    world expected;
  };

  const std::vector<row> rows = {
      {{}, {"", 0, 1}},
      {{{"SPARK_COMM_ADDRESS", "h:1"}, {"SPARK_COMM_RANK", "1"}, {"SPARK_COMM_WORLD_SIZE", "2"}},
       {"h:1", 1, 2}},
      {{{"MASTER_ADDR", "h"}, {"MASTER_PORT", "2"}, {"RANK", "3"}, {"WORLD_SIZE", "4"}},
       {"h:2", 3, 4}},
      {{{"MASTER_ADDR", "::1"}, {"MASTER_PORT", "2"}, {"RANK", "0"}, {"WORLD_SIZE", "4"}},
       {"[::1]:2", 0, 4}},
      {{{"SPARK_COMM_ADDRESS", "h:1"},
        {"OMPI_COMM_WORLD_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "2"}},
       {"h:1", 1, 2}},
      {{{"MASTER_ADDR", "h"}, {"MASTER_PORT", "2"}, {"PMIX_RANK", "1"}, {"PMIX_SIZE", "2"}},
       {"h:2", 1, 2}},
      {{{"SLURM_PROCID", "1"},
        {"SLURM_NTASKS", "2"},
        {"SLURM_JOB_NODELIST", "n[3-4]"},
        {"MASTER_PORT", "5"}},
       {"n3:5", 1, 2}},
      {{{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SPARK_COMM_ADDRESS", "h:1"}},
       {"h:1", 1, 2}},
      {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}, {"", 0, 1}},
      // torchrun inside a SLURM job: torchrun is the nearer launcher.
      {{{"SLURM_PROCID", "0"},
        {"SLURM_NTASKS", "1"},
        {"RANK", "1"},
        {"WORLD_SIZE", "2"},
        {"MASTER_ADDR", "h"},
        {"MASTER_PORT", "2"}},
       {"h:2", 1, 2}},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const world place = place_of(rows[i].variables);
    EXPECT_EQ(place.address, rows[i].expected.address) << i;
    EXPECT_EQ(place.rank, rows[i].expected.rank) << i;
    EXPECT_EQ(place.world_size, rows[i].expected.world_size) << i;
  }
}

TEST(environment, names_the_variable_that_is_wrong) {
  struct row {
    table variables;
    std::string reason;
  };

  const std::vector<row> rows = {
      {{{"SPARK_COMM_ADDRESS", "h:1"}}, "neither SPARK_COMM_RANK"},
      {{{"SPARK_COMM_WORLD_SIZE", "2"}}, "SPARK_COMM_RANK is not set"},
      {{{"SPARK_COMM_RANK", "0"}}, "SPARK_COMM_WORLD_SIZE is not set"},
      {{{"RANK", "x"}, {"WORLD_SIZE", "2"}}, "RANK is 'x'"},
      {{{"RANK", ""}, {"WORLD_SIZE", "2"}}, "RANK is ''"},
      {{{"RANK", "1"}, {"WORLD_SIZE", "2 "}}, "WORLD_SIZE is '2 '"},
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}}, "set SPARK_COMM_ADDRESS"},
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}}, "MASTER_PORT is not set"},
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "p"}},
       "port 'p'"},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}},
       "rank 2 is not from 0 to 1"},
      {{{"SLURM_PROCID", "1"},
        {"SLURM_NTASKS", "2"},
        {"SLURM_JOB_NODELIST", "n["},
        {"MASTER_PORT", "1"}},
       "SLURM_JOB_NODELIST"},
  };
  for (const row& each : rows) {
    try {
      (void)place_of(each.variables);
      ADD_FAILURE() << each.reason;
    } catch (const error& failure) {
      EXPECT_EQ(failure.kind(), errc::invalid_argument);
      EXPECT_THAT(failure.message(), HasSubstr(each.reason));
    }
  }
}

TEST(environment, finds_the_first_node_of_a_slurm_list) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"n1", "n1"},
      {"n1,n2", "n1"},
      {"n[1-4]", "n1"},
      {"n[03-07,9],login1", "n03"},
      {"gpu-a[10,12]", "gpu-a10"},
      {"r[1-2]n[05-06]", "r1n05"},
      {"n[1-4]-ib,x", "n1-ib"},
  };
  for (const auto& [list, first] : rows) {
    EXPECT_EQ(first_slurm_node(list), first) << list;
  }
  for (const std::string list : {"", ",n1", "n[", "n[]", "n[a-b]", "n[1"}) {
    EXPECT_THROW((void)first_slurm_node(list), error) << list;
  }
}

TEST(environment, an_unset_variable_is_absent) {
  EXPECT_EQ(process_variable("SPARK_COMM_NO_SUCH_VARIABLE"), std::nullopt);
}

}  // namespace
}  // namespace spark_comm::rendezvous
