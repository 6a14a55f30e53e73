// SPDX-License-Identifier: AGPL-3.0-only
#include "doctor/doctor.hpp"

#include "build_info.hpp"
#include "doctor/checks.hpp"
#include "doctor/finding.hpp"
#include "doctor/machine_files.hpp"
#include "doctor/peer.hpp"
#include "doctor/snapshot.hpp"
#include "exit_code.hpp"

#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace spark_comm::app {

void validate(const doctor_options& options) {
  if (options.rank && (*options.rank < 0 || *options.rank > 1)) {
    throw usage_failure(fmt::format("doctor: --rank {}: accepted are 0 and 1", *options.rank));
  }
  if (options.rank && options.peer.empty()) {
    throw usage_failure(
        "doctor: --rank says who listens at the address of --peer, which is missing");
  }
  if (!options.peer.empty() && options.root != "/") {
    throw usage_failure("doctor: --peer measures real machines, so it does not go with --root");
  }
}

namespace doctor {

std::string to_json(const machine_snapshot& machine, std::span<const finding> all) {
  using json = nlohmann::ordered_json;
  json list = json::array();
  for (const finding& each : all) {
    list.push_back({{"grade", name_of(each.how)},
                    {"check", each.check},
                    {"seen", each.seen},
                    {"means", each.means},
                    {"remedy", each.remedy}});
  }
  const json document = {{"schema", "spark-comm/doctor"},
                         {"schema_version", 1},
                         {"version", build_version()},
                         {"commit", build_commit()},
                         {"host", machine.host},
                         {"product", machine.product},
                         {"kernel", machine.kernel},
                         {"driver", machine.driver},
                         {"gpus", machine.gpus.size()},
                         {"nccl", machine.nccl.empty() ? "" : machine.nccl.front().version},
                         {"findings", list},
                         {"exit_code", static_cast<int>(exit_code_for(all))}};
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace doctor

exit_code run_doctor(const doctor_options& options) {
  const doctor::machine_files files = doctor::machine_files::open(options.root);
  if (!options.record_file.empty()) {
    std::ofstream file{options.record_file};
    file << files.to_recording();
    if (!file.flush()) {
      throw failure(exit_code::failed, fmt::format("doctor: cannot write {}", options.record_file));
    }
  }
  const doctor::machine_snapshot machine = doctor::read_snapshot(files);
  doctor::findings all = doctor::check_machine(machine);
  if (!options.peer.empty()) {
    const doctor::findings between = doctor::examine_pair(options, files);
    all.insert(all.end(), between.begin(), between.end());
    all = doctor::by_grade(std::move(all));
  }
  if (options.as_json) {
    fmt::print("{}", doctor::to_json(machine, all));
  } else {
    fmt::print("{}{}", doctor::describe(machine), doctor::to_text(all));
  }
  return doctor::exit_code_for(all);
}

}  // namespace spark_comm::app
