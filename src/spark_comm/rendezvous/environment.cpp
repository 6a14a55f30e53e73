// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/address.hpp>
#include <spark_comm/rendezvous/environment.hpp>
#include <spark_comm/rendezvous/world.hpp>

#include <charconv>
#include <cstdlib>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace spark_comm::rendezvous {
namespace {

using variable = std::optional<std::string>;

[[noreturn]] void refuse(std::string text) {
  throw error{errc::invalid_argument, std::move(text)};
}

int number_of(std::string_view name, const variable& value, std::string_view launcher) {
  if (!value) {
    refuse(fmt::format("{} is not set, which the launcher ({}) should have done", name, launcher));
  }
  int number = 0;
  const char* const end = value->data() + value->size();
  const auto [stop, failure] = std::from_chars(value->data(), end, number);
  if (value->empty() || failure != std::errc{} || stop != end) {
    refuse(fmt::format("{} is '{}', which is not a number", name, *value));
  }
  return number;
}

/// How one launcher says rank and world size.
struct launcher {
  std::string_view name;
  std::string_view rank_name;
  const variable& rank;
  std::string_view size_name;
  const variable& size;
};

std::string address_of(const launcher_variables& all, const launcher& who) {
  if (all.spark_comm_address) {
    return *all.spark_comm_address;
  }
  variable host = all.master_addr;
  if (!host && who.name == "SLURM" && all.slurm_nodes) {
    host = first_slurm_node(*all.slurm_nodes);
  }
  if (!host) {
    refuse(
        fmt::format("the launcher ({}) does not say where to meet: set SPARK_COMM_ADDRESS, or "
                    "MASTER_ADDR and MASTER_PORT",
                    who.name));
  }
  if (!all.master_port) {
    refuse("MASTER_PORT is not set: set it, or SPARK_COMM_ADDRESS");
  }
  return to_string(join_address(*host, *all.master_port));
}

}  // namespace

std::optional<std::string> process_variable(std::string_view name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): read once, at start-up; the program sets none meanwhile.
  const char* const value = std::getenv(std::string{name}.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>{value};
}

launcher_variables launcher_variables::read(const variable_source& source) {
  return {.spark_comm_address = source("SPARK_COMM_ADDRESS"),
          .spark_comm_rank = source("SPARK_COMM_RANK"),
          .spark_comm_world_size = source("SPARK_COMM_WORLD_SIZE"),
          .master_addr = source("MASTER_ADDR"),
          .master_port = source("MASTER_PORT"),
          .torchrun_rank = source("RANK"),
          .torchrun_world_size = source("WORLD_SIZE"),
          .open_mpi_rank = source("OMPI_COMM_WORLD_RANK"),
          .open_mpi_world_size = source("OMPI_COMM_WORLD_SIZE"),
          .pmix_rank = source("PMIX_RANK"),
          .pmix_world_size = source("PMIX_SIZE"),
          .slurm_rank = source("SLURM_PROCID"),
          .slurm_world_size = source("SLURM_NTASKS"),
          .slurm_nodes = source("SLURM_JOB_NODELIST")};
}

world place_from(const launcher_variables& all) {
  const launcher launchers[] = {
      {"spark_comm",
       "SPARK_COMM_RANK",
       all.spark_comm_rank,
       "SPARK_COMM_WORLD_SIZE",
       all.spark_comm_world_size},
      {"torchrun", "RANK", all.torchrun_rank, "WORLD_SIZE", all.torchrun_world_size},
      {"Open MPI",
       "OMPI_COMM_WORLD_RANK",
       all.open_mpi_rank,
       "OMPI_COMM_WORLD_SIZE",
       all.open_mpi_world_size},
      {"PMIx", "PMIX_RANK", all.pmix_rank, "PMIX_SIZE", all.pmix_world_size},
      {"SLURM", "SLURM_PROCID", all.slurm_rank, "SLURM_NTASKS", all.slurm_world_size},
  };
  for (const launcher& each : launchers) {
    // A world size alone is a half-set launcher for our own variables, and for others too common a
    // name to mean anything.
    const bool is_ours = each.name == "spark_comm";
    if (!each.rank && !(is_ours && each.size)) {
      continue;
    }
    world place;
    place.rank = number_of(each.rank_name, each.rank, each.name);
    place.world_size = number_of(each.size_name, each.size, each.name);
    if (place.world_size != 1 || all.spark_comm_address) {
      place.address = address_of(all, each);
    }
    check_place(place);
    return place;
  }
  if (all.spark_comm_address) {
    refuse("SPARK_COMM_ADDRESS is set, but neither SPARK_COMM_RANK nor a launcher's rank is");
  }
  return {};
}

std::string first_slurm_node(std::string_view list) {
  const auto bracket = list.find_first_of("[,");
  if (bracket == std::string_view::npos || list[bracket] == ',') {
    const std::string_view name = list.substr(0, bracket);
    if (name.empty()) {
      refuse("SLURM_JOB_NODELIST names no node");
    }
    return std::string{name};
  }
  const auto close = list.find(']', bracket);
  std::string_view first = list.substr(bracket + 1, close - bracket - 1);
  first = first.substr(0, first.find_first_of(",-"));
  if (close == std::string_view::npos || first.empty() ||
      first.find_first_not_of("0123456789") != std::string_view::npos) {
    refuse(fmt::format("SLURM_JOB_NODELIST '{}' cannot be read", list));
  }
  // What follows the bracket belongs to the name, up to the next node; it may hold another range.
  const std::string_view rest = list.substr(close + 1);
  const std::string head = fmt::format("{}{}", list.substr(0, bracket), first);
  if (rest.empty() || rest.front() == ',') {
    return head;
  }
  return head + first_slurm_node(rest);
}

}  // namespace spark_comm::rendezvous

namespace spark_comm {

world world::from_environment() {
  return rendezvous::place_from(rendezvous::launcher_variables::read(rendezvous::process_variable));
}

}  // namespace spark_comm
